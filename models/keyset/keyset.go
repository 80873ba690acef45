// Package keyset reads the sets of public keys that others publish: providers, issuers and
// scanners. An entry that cannot be used never keeps the others out. The package imports nothing of
// ours.
package keyset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

const (
	maxKeys    = 100 // of a set; others are skipped
	maxSkipped = 10  // entries that are named; others are counted
)

// Set is a set of public keys.
type Set struct {
	Keys []jose.JSONWebKey // only the public members
	// Why other entries are not used, such as `entry 2 (kid "x"): ...`, at most 10 of them.
	Skipped []string
	// An entry has a private or a symmetric key. Its public part is used all the same.
	Private bool
}

// errNoKeys is the error of a set without entries. Other sets have the reasons of theirs.
var errNoKeys = errors.New("the set has no public keys")

// Parse returns the keys of a JWKS (RFC 7517) that verify tokens. It errs if there is none.
func Parse(document []byte) (Set, error) { return parse(document, false) }

// ParseNamed is [Parse] for tokens that name their keys. Keys without an id are not used.
func ParseNamed(document []byte) (Set, error) { return parse(document, true) }

func parse(document []byte, named bool) (set Set, err error) {
	var list struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(withoutMark(document), &list); err != nil {
		return Set{}, err
	}
	skipped := skips{}
	for i, text := range list.Keys {
		found, err := readEntry(text)
		set.Private = set.Private || found.private()
		key := jose.JSONWebKey{}
		if err == nil {
			key, err = found.key()
		}
		switch {
		case errors.Is(err, errOtherUse): // usual, such as a key for encryption
		case err != nil:
			skipped.add(i, found.name(), err)
		case named && key.KeyID == "":
			skipped.add(i, "", errors.New("it has no kid"))
		case len(set.Keys) == maxKeys:
			skipped.add(i, key.KeyID, fmt.Errorf("the set has more than %d keys", maxKeys))
		default:
			set.Keys = append(set.Keys, key)
		}
	}
	set.Skipped = skipped.list()
	if len(set.Keys) == 0 {
		return set, noKeys(set.Skipped)
	}
	return set, nil
}

// withoutMark returns a document without the byte order mark before it, which RFC 8259 lets a
// reader ignore.
func withoutMark(document []byte) []byte { return bytes.TrimPrefix(document, []byte("\ufeff")) }

// noKeys returns the error for a set without keys.
func noKeys(skipped []string) error {
	if len(skipped) == 0 {
		return errNoKeys
	}
	return errors.New(strings.Join(skipped, "; "))
}

// ByID returns the keys by their ids. Several may have the same.
func (s Set) ByID() map[string][]jose.JSONWebKey {
	keys := make(map[string][]jose.JSONWebKey, len(s.Keys))
	for _, key := range s.Keys {
		keys[key.KeyID] = append(keys[key.KeyID], key)
	}
	return keys
}

// JSON returns the set as a JWKS, with the public members of its keys and nothing else.
func (s Set) JSON() ([]byte, error) { return json.Marshal(jose.JSONWebKeySet{Keys: s.Keys}) }

// LogSkipped logs a warning about the entries of a set that are not used, if there are any.
func LogSkipped(ctx context.Context, logger *slog.Logger, publisher string, skipped []string) {
	if len(skipped) > 0 {
		logger.WarnContext(ctx, "some public keys cannot be used", slog.String("publisher", publisher), slog.Any("entries", skipped))
	}
}

// skips are the entries of a set that are not used.
type skips struct {
	named []string
	more  int
}

func (s *skips) add(index int, id string, reason error) {
	if len(s.named) == maxSkipped {
		s.more++
		return
	}
	entry := fmt.Sprintf("entry %d", index+1)
	if id != "" {
		entry += fmt.Sprintf(" (%.100q)", id)
	}
	s.named = append(s.named, entry+": "+reason.Error())
}

func (s *skips) list() []string {
	if s.more > 0 {
		return append(s.named, fmt.Sprintf("and %d more", s.more))
	}
	return s.named
}
