package models

import (
	"context"
	"encoding/hex"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/uptrace/bun"
)

// LeakSource is where the report of a leaked key came from, or empty for a key that nobody has
// reported.
type LeakSource string

// The sources of reports.
const (
	LeakGitHub LeakSource = "github"
	LeakGitLab LeakSource = "gitlab"
	LeakPublic LeakSource = "public" // anyone, without credentials
)

// String returns the source as users see it, such as "Reported as leaked by GitHub".
func (s LeakSource) String() string {
	switch s {
	case LeakGitHub:
		return "Reported as leaked by GitHub"
	case LeakGitLab:
		return "Reported as leaked by GitLab"
	default:
		return "Reported as leaked"
	}
}

// Leak says who reported a key as leaked, and where it was found.
type Leak struct {
	Source LeakSource `bun:",nullzero"`
	URL    string     `bun:"url,nullzero"` // as cleaned by cleanLeakURL
}

// String returns the reason with the URL, such as "Reported as leaked by GitHub: https://...".
// Unless the key was reported, it is empty.
func (l Leak) String() string {
	switch {
	case l.Source == "":
		return ""
	case l.URL == "":
		return l.Source.String()
	default:
		return l.Source.String() + ": " + l.URL
	}
}

// Link returns the URL if it is an http or https URL, and "" if it must not be a link.
func (l Leak) Link() string {
	u, err := url.Parse(l.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return ""
	}
	return l.URL
}

// LeakedText is a reported text, which may be an API key, and holds only its hash.
type LeakedText struct {
	hash       keyHash
	wellFormed bool
	url        string
}

// NewLeakedText returns a reported text and where it was found; the URL may be empty.
func NewLeakedText(text, url string) LeakedText {
	return LeakedText{hashKey(text), checkKeySecret(text) == nil, cleanLeakURL(url)}
}

// Hash returns the SHA-256 of the text.
func (t LeakedText) Hash() [32]byte { return t.hash }

// LeakOutcome is what a report did.
type LeakOutcome string

// The outcomes of a report.
const (
	LeakRevoked  LeakOutcome = "revoked"
	LeakInactive LeakOutcome = "inactive" // a key that was revoked or had expired
	LeakUnknown  LeakOutcome = "unknown"  // not a key of this portal
)

// leakBatch is the number of keys that one statement looks up.
const leakBatch = 100

// ReportLeaked revokes the reported keys that are active, of any account, records who reported
// them, and returns the outcome of each text. The address is that of a reporter without
// credentials.
//
// Each key has a transaction of its own, and each transaction and each look-up the time limit of
// the database. With an error come the outcomes of the texts before it: those keys stay revoked,
// and the report can be repeated.
func (k *Keys) ReportLeaked(ctx context.Context, texts []LeakedText, source LeakSource, address string) ([]LeakOutcome, error) {
	outcomes := make([]LeakOutcome, 0, len(texts))
	for batch := range slices.Chunk(texts, leakBatch) {
		known, err := k.findLeaked(ctx, batch)
		if err != nil {
			return outcomes, err
		}
		for _, text := range batch {
			key, found := known[text.hash]
			outcome := LeakUnknown
			switch {
			case !found:
			case source == LeakPublic && key.RevokedAt != nil:
				outcome = LeakInactive // without a lock, because anyone can repeat the report
			default:
				if outcome, err = k.revokeLeaked(ctx, key, Leak{source, text.url}, visitorActor(address)); err != nil {
					return outcomes, err
				}
			}
			outcomes = append(outcomes, outcome)
		}
	}
	return outcomes, nil
}

// findLeaked returns the keys, active or not, among the texts of a batch.
func (k *Keys) findLeaked(ctx context.Context, batch []LeakedText) (map[keyHash]Key, error) {
	var hashes [][]byte
	for _, text := range batch {
		if text.wellFormed {
			hashes = append(hashes, text.hash[:])
		}
	}
	if len(hashes) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, k.db.timeout)
	defer cancel()
	var keys []Key
	err := k.db.NewSelect().Model(&keys).Where("api_key.key_hash IN (?)", bun.List(hashes)).Scan(ctx)
	if err != nil {
		return nil, failed("find leaked API keys", err)
	}
	known := make(map[keyHash]Key, len(keys))
	for _, key := range keys {
		known[keyHash(key.KeyHash)] = key
	}
	return known, nil
}

// revokeLeaked also locks a key that is revoked already; see [Keys.change].
func (k *Keys) revokeLeaked(ctx context.Context, key Key, leak Leak, actor Actor) (LeakOutcome, error) {
	_, err := k.change(ctx, key.AccountID, key.ID, Tx.lockAccountsTable, Tx.hasEnded, func(ctx context.Context, tx Tx, key *Key) error {
		now := tx.Now()
		key.RevokedAt, key.Leak = &now, leak
		if err := tx.Update(ctx, key, "revoked_at", "leak_source", "leak_url"); err != nil {
			return err
		}
		return tx.RecordEnd(ctx, key.AccountID, actor, ActionKeyLeaked, key.ID, key.Label)
	})
	switch {
	case errors.Is(err, ErrKeyAlreadyRevoked):
		return LeakInactive, nil
	case errors.Is(err, ErrKeyNotFound): // deleted since
		return LeakUnknown, nil
	default:
		return LeakRevoked, err
	}
}

// maxLeakURL is how many characters of a reported URL are stored.
const maxLeakURL = 500

var percentEncoded = regexp.MustCompile(`(?:%[0-9A-Fa-f]{2})+`)

// percentDecode returns the bytes of a text that [percentEncoded] matches.
func percentDecode(text string) string {
	// Only hexadecimal digits are left.
	decoded, _ := hex.DecodeString(strings.ReplaceAll(text, "%", ""))
	return string(decoded)
}

// keyInURL matches an API key in a URL, and most of one, but no usual name that begins with nas_.
var keyInURL = regexp.MustCompile(`(?i)nas(?:_|%5f)[0-9a-z]{20,}`)

// cleanLeakURL masks API keys and removes what could mislead a reader: control characters, bidi
// controls and other invisible characters.
func cleanLeakURL(reported string) string {
	clean := withoutHidden(reported)
	// A key may be percent-encoded, also in a URL that is not well-formed.
	if decoded := withoutHidden(percentEncoded.ReplaceAllStringFunc(clean, percentDecode)); keyInURL.MatchString(decoded) {
		clean = decoded
	}
	clean = keyInURL.ReplaceAllStringFunc(clean, func(key string) string { return masked(key[len(key)-4:]) })
	if utf8.RuneCountInString(clean) > maxLeakURL {
		clean = string([]rune(clean)[:maxLeakURL])
	}
	return clean
}

func withoutHidden(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
}
