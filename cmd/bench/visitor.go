package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
)

// visitor is a browser without JavaScript, whose user is signed in.
type visitor struct {
	client http.Client
	base   string // URL of the server
}

// signIn returns a visitor for the user of the tenant's first account.
func (s *server) signIn(ctx context.Context) (*visitor, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	v := &visitor{client: http.Client{Jar: jar, Timeout: stopTimeout}, base: "http://" + s.address}
	page, err := v.post(ctx, "/login", url.Values{"email": {benchEmail}, "password": {benchPassword}})
	if err == nil && !strings.Contains(page, "Sign out") {
		err = errors.New("sign-in failed")
	}
	return v, err
}

// get loads a page.
func (v *visitor) get(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, nil)
	if err != nil {
		return "", err
	}
	return v.do(request)
}

// post submits a form and returns the page that the response leads to.
func (v *visitor) post(ctx context.Context, path string, form url.Values) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, v.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.do(request)
}

func (v *visitor) do(request *http.Request) (page string, err error) {
	response, err := v.client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s %s: status %s", request.Method, request.URL.Path, response.Status)
	}
	return string(body), nil
}

// readPages loads the pages in turn until ctx ends, one every interval.
func (v *visitor) readPages(ctx context.Context, interval time.Duration, paths []string) error {
	for i := 0; ctx.Err() == nil; i++ {
		if _, err := v.get(ctx, paths[i%len(paths)]); err != nil && ctx.Err() == nil {
			return err
		}
		sleep(ctx, interval)
	}
	return nil
}

var revocationAddress = regexp.MustCompile(`/api-keys/[0-9a-f-]{36}/revocation`)

// rotateKeys generates a key and revokes it, every interval until ctx ends.
func (v *visitor) rotateKeys(ctx context.Context, interval time.Duration) error {
	for ctx.Err() == nil {
		if err := v.rotateKey(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		sleep(ctx, interval)
	}
	return nil
}

func (v *visitor) rotateKey(ctx context.Context) error {
	if _, err := v.post(ctx, "/api-keys", url.Values{"label": {"Rotated"}, "form_id": {uuid.NewString()}}); err != nil {
		return err
	}
	page, err := v.get(ctx, "/api-keys") // the newest key first
	if err != nil {
		return err
	}
	_, err = v.post(ctx, revocationAddress.FindString(page), nil)
	return err
}
