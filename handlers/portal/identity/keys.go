package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"golang.org/x/sync/singleflight"

	"portal/models/keyset"
)

// keys verify ID tokens with the provider's public keys, as an [oidc.KeySet]. If none verifies a
// token, they are fetched again, because the provider may have new ones. Only the provider gives
// the portal ID tokens, so strangers cause no fetches.
type keys struct {
	address string
	config  Config
	client  *http.Client

	fetching singleflight.Group
	known    atomic.Pointer[keyset.Set]
}

// VerifySignature implements [oidc.KeySet].
func (k *keys) VerifySignature(ctx context.Context, token string) (payload []byte, err error) {
	if known := k.known.Load(); known != nil {
		if payload, err = known.Verify(token); err == nil {
			return payload, nil
		}
	}
	// The fetch must not end when the caller who began it leaves.
	result := k.fetching.DoChan("", func() (any, error) { return k.fetch(context.WithoutCancel(ctx)) })
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-result:
		set, ok := r.Val.(keyset.Set)
		if r.Err != nil || !ok {
			return nil, fmt.Errorf("the public keys: %w", r.Err)
		}
		return set.Verify(token)
	}
}

// fetch replaces the keys by those of the provider, within the time limit of the client.
func (k *keys) fetch(ctx context.Context) (set keyset.Set, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.address, http.NoBody)
	if err != nil {
		return set, err
	}
	response, err := k.client.Do(request)
	if err != nil {
		return set, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return set, errors.New("the status is " + response.Status)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return set, err
	}
	if set, err = keyset.Parse(body); err != nil {
		return set, err
	}
	keyset.LogSkipped(ctx, k.config.Logger, k.config.Issuer, set.Skipped)
	k.known.Store(&set)
	return set, nil
}

// algorithms returns the algorithms of ID tokens that are accepted. Those that the metadata name
// are not asked for, because providers forget some, and a key verifies only the algorithms of its
// kind.
func algorithms() (names []string) {
	for _, algorithm := range keyset.Algorithms() {
		names = append(names, string(algorithm))
	}
	return names
}
