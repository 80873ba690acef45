package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	clients    = 6
	watchers   = 2                      // backends that use a key while it is revoked
	pause      = 15 * time.Millisecond  // between the requests of a backend, on average
	afterwards = 600 * time.Millisecond // how long a key is used after its revocation
	attempts   = 8                      // of one write before the client gives it up
	listedKeys = 30                     // the latest keys, which a list is compared with
	keptKeys   = 200                    // of one client, for later uses
	longLived  = 5                      // active keys that a client keeps
)

// workload is what one client does: it takes keys through their life, one after the other, on
// portals chosen at random.
type workload struct {
	*client

	name      string
	instances []instance
	rng       *rand.Rand
	made      int    // keys
	active    []*key // long-lived ones
	old       []*key // revoked ones, or given up
	labels    []string
	mu        sync.Mutex // guards rng, which watchers use too
}

// run runs until ctx ends.
func (w *workload) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.life(ctx); err != nil {
			// The portal was away, or the client was signed out. It tries again like any user.
			w.sleep(ctx, 100*time.Millisecond)
		}
	}
}

// life generates a key, and revokes it or one that has been kept. The keys are used meanwhile.
func (w *workload) life(ctx context.Context) error {
	k, err := w.generateKey(ctx)
	if err != nil {
		return err
	}
	if k.secret != "" {
		w.useFor(ctx, k, w.chance(20))
		if w.active = append(w.active, k); len(w.active) <= longLived || w.chance(3) == 0 {
			return nil
		}
		i := w.chance(len(w.active))
		k, w.active[i] = w.active[i], w.active[len(w.active)-1]
		w.active = w.active[:len(w.active)-1]
	}
	return w.revokeInUse(ctx, k)
}

// generateKey sends a form until it knows what became of it. The key has no secret if it exists and
// was not shown.
func (w *workload) generateKey(ctx context.Context) (*key, error) {
	p, err := w.list(ctx, w.pick(), w.latest())
	if err != nil {
		return nil, err
	}
	if err := w.revokeAll(ctx, w.pick(), p, w.active); err != nil {
		return nil, err
	}
	w.made++
	k := &key{label: fmt.Sprintf("%s-%d", w.name, w.made)}
	w.labels = append(w.labels, k.label)
	for range attempts {
		switch w.generate(ctx, w.pick(), p.form, k) {
		case made:
			return k, nil
		case exists:
			return k, w.findID(ctx, k)
		case nothing:
			return nil, errSignedOut
		default: // not known: the same form again
		}
		if w.sleep(ctx, 200*time.Millisecond) != nil {
			break
		}
	}
	return nil, errNoAnswer
}

// findID looks for the key in the list.
func (w *workload) findID(ctx context.Context, k *key) error {
	return retry(ctx, recoveryLimit, func(ctx context.Context) error {
		p, err := w.list(ctx, w.pick(), w.latest())
		if k.id = p.ids[k.label]; err == nil && k.id == "" {
			err = errors.New("the list lacks a key that exists") // the checker reports it
		}
		return err
	})
}

// revokeInUse revokes a key while backends use it, and uses it a little longer.
func (w *workload) revokeInUse(ctx context.Context, k *key) error {
	if k.secret == "" {
		return w.revokeKey(ctx, k)
	}
	var using sync.WaitGroup
	watched, stop := context.WithCancel(ctx)
	for range watchers {
		using.Go(func() {
			for watched.Err() == nil {
				w.use(watched, w.pick(), k)
				_ = w.sleep(watched, 2*pause)
			}
		})
	}
	err := w.revokeKey(ctx, k)
	_ = w.sleep(ctx, 2*afterwards)
	stop()
	using.Wait()
	_, listErr := w.list(ctx, w.pick(), w.latest())
	if w.old = append(w.old, k); len(w.old) > keptKeys {
		w.old = w.old[1:]
	}
	w.use(ctx, w.pick(), w.old[w.chance(len(w.old))])
	return errors.Join(err, listErr)
}

// revokeKey tries until the revocation is confirmed.
func (w *workload) revokeKey(ctx context.Context, k *key) error {
	for range attempts {
		if o := w.revoke(ctx, w.pick(), k); o == done || o == unknown {
			return nil
		}
		if err := w.signIn(ctx, w.pick()); err != nil && w.sleep(ctx, 200*time.Millisecond) != nil {
			break
		}
	}
	return errNoAnswer
}

// useFor uses a key so many times.
func (w *workload) useFor(ctx context.Context, k *key, times int) {
	for range times {
		w.use(ctx, w.pick(), k)
		if w.sleep(ctx, 2*pause) != nil {
			return
		}
	}
}

// useAll uses every key that this client still knows, once on each portal, and compares the list.
func (w *workload) useAll(ctx context.Context) error {
	for _, at := range w.instances {
		for _, keys := range [][]*key{w.active, w.old} {
			for _, k := range keys {
				w.use(ctx, at, k)
			}
		}
		if err := w.signIn(ctx, at); err != nil {
			return err
		}
		if _, err := w.list(ctx, at, w.latest()); err != nil {
			return err
		}
	}
	return nil
}

// latest returns the labels that a list is compared with: the latest keys and the long-lived ones.
func (w *workload) latest() []string {
	labels := w.labels[max(0, len(w.labels)-listedKeys):]
	for _, k := range w.active {
		labels = append(labels[:len(labels):len(labels)], k.label)
	}
	return unique(labels)
}

func unique(labels []string) []string {
	seen := map[string]bool{}
	var kept []string
	for _, label := range labels {
		if !seen[label] {
			seen[label] = true
			kept = append(kept, label)
		}
	}
	return kept
}

// pick returns a portal.
func (w *workload) pick() instance { return w.instances[w.chance(len(w.instances))] }

// chance returns a number below n.
func (w *workload) chance(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// sleep waits for up to d, or until ctx ends, which it returns as an error.
func (w *workload) sleep(ctx context.Context, d time.Duration) error {
	return sleep(ctx, time.Duration(w.chance(int(d))))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// prober takes one key through its life on one portal, to see whether it serves.
type prober struct {
	*client

	at   instance
	made int
}

var errNotServing = errors.New("the portal does not serve")

// probe returns nil when the portal has generated, accepted, listed, revoked and refused a key.
func (p *prober) probe(ctx context.Context) error {
	page, err := p.list(ctx, p.at, nil)
	if err != nil {
		return err
	}
	if err := p.revokeAll(ctx, p.at, page, nil); err != nil {
		return err
	}
	p.made++
	k := &key{label: fmt.Sprintf("probe %d-%d", p.at.number, p.made)}
	if p.generate(ctx, p.at, page.form, k) != made || p.use(ctx, p.at, k) != accepted {
		return errNotServing
	}
	if _, err := p.list(ctx, p.at, []string{k.label}); err != nil {
		return err
	}
	if p.revoke(ctx, p.at, k) != done || p.use(ctx, p.at, k) != refused {
		return errNotServing
	}
	return nil
}

// revokeAll revokes the keys of a page that the client has given up: their generation or revocation
// had no clear answer.
func (c *client) revokeAll(ctx context.Context, at instance, p page, keep []*key) error {
	for _, k := range keep {
		delete(p.ids, k.label)
	}
	for label, id := range p.ids {
		if o := c.revoke(ctx, at, &key{label: label, id: id}); o == open || o == nothing {
			return errNoAnswer
		}
	}
	return nil
}
