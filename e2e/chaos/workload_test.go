package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	clients            = 6
	watchers           = 2                      // backends that use a key during its revocation
	pause              = 15 * time.Millisecond  // between the requests of a backend, on average
	useAfterRevocation = 600 * time.Millisecond // how long a key is used after its revocation
	attempts           = 8                      // of one write
	listedKeys         = 30                     // latest keys that each list is checked for
	keptKeys           = 200                    // revoked keys that a client uses again later
	longLived          = 5                      // active keys of a client
)

// workload makes one client generate, use and revoke keys, one after the other. A third of the keys
// have no secret: the client uses access tokens, and also saves the rules. It sends each request to
// a random portal.
type workload struct {
	*client

	name    string
	rng     *rand.Rand
	labels  []string   // of all keys
	active  []*key     // not revoked yet
	retired []*key     // revoked, or the revocation had no clear outcome
	mu      sync.Mutex // guards rng
}

// run runs until ctx ends. If the portal is unavailable or the session has ended, it tries again.
func (w *workload) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.lifecycle(ctx); err != nil {
			w.sleep(ctx, 100*time.Millisecond)
		}
	}
}

// lifecycle generates and uses a key. It then keeps the key, or revokes it or one of the kept keys.
func (w *workload) lifecycle(ctx context.Context) error {
	k, err := w.generateKey(ctx)
	if err != nil {
		return err
	}
	if k.secret != "" || k.token != nil {
		for range w.randomInt(20) {
			w.use(ctx, w.pick(), k)
			_ = w.sleep(ctx, 2*pause)
		}
		if k.token != nil && w.randomInt(2) == 0 {
			w.saveRuleInUse(ctx, k)
		}
		if w.active = append(w.active, k); len(w.active) <= longLived {
			return nil
		}
		i := w.randomInt(len(w.active))
		k, w.active[i] = w.active[i], w.active[len(w.active)-1]
		w.active = w.active[:len(w.active)-1]
	}
	return w.revokeInUse(ctx, k)
}

// generateKey submits one form until the outcome is known. The key has no secret if the response
// that revealed it was lost.
func (w *workload) generateKey(ctx context.Context) (*key, error) {
	p, err := w.list(ctx, w.pick(), w.latest()...)
	if err != nil {
		return nil, err
	}
	if err := w.revokeAll(ctx, w.pick(), p, w.active); err != nil {
		return nil, err
	}
	k := &key{label: fmt.Sprintf("%s-%d", w.name, len(w.labels)+1), trusted: w.randomInt(3) == 0}
	w.labels = append(w.labels, k.label)
	for range attempts {
		switch w.generate(ctx, w.pick(), p.form, k) {
		case created:
			if k.trusted {
				w.exchange(ctx, w.pick(), k)
			}
			return k, nil
		case exists:
			return k, w.findID(ctx, k)
		case noResponse:
			return nil, errSignedOut
		default: // the outcome is unknown: submit the same form again
		}
		if w.sleep(ctx, 200*time.Millisecond) != nil {
			break
		}
	}
	return nil, errUnavailable
}

// findID reads the key's id from the list.
func (w *workload) findID(ctx context.Context, k *key) error {
	return retry(ctx, recoveryLimit, func(ctx context.Context) error {
		p, err := w.list(ctx, w.pick(), w.latest()...)
		if k.id = p.ids[k.label]; err == nil && k.id == "" {
			// The checker reports it too.
			err = errors.New("an existing key is not listed")
		}
		return err
	})
}

// whileUsed calls end while backends use a key or an access token. They continue for a while
// afterwards.
func (w *workload) whileUsed(ctx context.Context, k *key, end func()) {
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
	end()
	_ = w.sleep(ctx, 2*useAfterRevocation)
	stop()
	using.Wait()
}

// saveRuleInUse saves the trust rule of a key while backends use its access token, and exchanges a
// new one.
func (w *workload) saveRuleInUse(ctx context.Context, k *key) {
	w.whileUsed(ctx, k, func() { w.saveRule(ctx, w.pick(), k) })
	w.exchange(ctx, w.pick(), k)
}

// revokeInUse revokes a key while backends use it.
func (w *workload) revokeInUse(ctx context.Context, k *key) error {
	if k.secret == "" && k.token == nil {
		return w.revokeKey(ctx, k)
	}
	var err error
	w.whileUsed(ctx, k, func() { err = w.revokeKey(ctx, k) })
	_, listErr := w.list(ctx, w.pick(), w.latest()...)
	if w.retired = append(w.retired, k); len(w.retired) > keptKeys {
		w.retired = w.retired[1:]
	}
	w.use(ctx, w.pick(), w.retired[w.randomInt(len(w.retired))])
	return errors.Join(err, listErr)
}

// revokeKey retries until the revocation is confirmed or the key is unknown.
func (w *workload) revokeKey(ctx context.Context, k *key) error {
	for range attempts {
		o := w.revoke(ctx, w.pick(), k)
		if o == indeterminate && w.randomInt(2) == 0 {
			o = w.check(ctx, w.pick(), k)
		}
		if o == confirmed || o == unknown {
			return nil
		}
		if err := w.signIn(ctx, w.pick()); err != nil && w.sleep(ctx, 200*time.Millisecond) != nil {
			break
		}
	}
	return errUnavailable
}

// useAll uses every key that the client still holds once on each portal, and checks each list.
func (w *workload) useAll(ctx context.Context) error {
	for at := range w.portals {
		for _, k := range slices.Concat(w.active, w.retired) {
			w.use(ctx, at, k)
		}
		if err := w.signIn(ctx, at); err != nil {
			return err
		}
		if _, err := w.list(ctx, at, w.latest()...); err != nil {
			return err
		}
	}
	return nil
}

// latest returns the labels of the latest keys and of the active ones, for checking a list.
func (w *workload) latest() []string {
	labels := slices.Clone(w.labels[max(0, len(w.labels)-listedKeys):])
	for _, k := range w.active {
		if !slices.Contains(labels, k.label) {
			labels = append(labels, k.label)
		}
	}
	return labels
}

// pick returns a random portal.
func (w *workload) pick() int { return w.randomInt(len(w.portals)) }

// randomInt returns a random number from 0 to n-1.
func (w *workload) randomInt(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// sleep waits for a random time below d. It returns an error if ctx ends first.
func (w *workload) sleep(ctx context.Context, d time.Duration) error {
	return sleep(ctx, time.Duration(w.randomInt(int(d))))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// prober checks whether a portal serves, with the whole lifecycle of a key.
type prober struct {
	*client

	at     int
	probes int
}

var errNotServing = errors.New("the portal does not serve")

// probe generates, uses, lists and revokes a key. It returns an error if a step does not have the
// right outcome.
func (p *prober) probe(ctx context.Context) error {
	p.probes++
	k := &key{label: fmt.Sprintf("probe %d-%d", p.at, p.probes)}
	page, err := p.list(ctx, p.at)
	if err != nil {
		return err
	}
	if err := p.revokeAll(ctx, p.at, page, nil); err != nil {
		return err
	}
	if p.generate(ctx, p.at, page.form, k) != created || p.use(ctx, p.at, k) != accepted {
		return errNotServing
	}
	if _, err := p.list(ctx, p.at, k.label); err != nil {
		return err
	}
	if p.revoke(ctx, p.at, k) != confirmed || p.use(ctx, p.at, k) != refused {
		return errNotServing
	}
	return nil
}

// revokeAll revokes all listed keys except those in keep. The generation or revocation of the
// others had no clear outcome.
func (c *client) revokeAll(ctx context.Context, at int, p page, keep []*key) error {
	for _, k := range keep {
		delete(p.ids, k.label)
	}
	for label, id := range p.ids {
		if o := c.revoke(ctx, at, &key{label: label, id: id}); o == indeterminate || o == noResponse {
			return errUnavailable
		}
	}
	return nil
}
