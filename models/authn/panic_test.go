package authn_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portal/models/authn"
	"portal/models/modelstest"
)

// panicking is a source that panics while broken is set.
type panicking struct {
	authn.Source
	broken atomic.Bool
}

func (p *panicking) Keys(deadline time.Time, wanted []authn.KeyRef) (authn.Moment, map[authn.KeyRef]authn.Key, error) {
	if p.broken.Load() {
		panic("a bug")
	}
	return p.Source.Keys(deadline, wanted)
}

func TestPanicFailsTheRequestsOfABatch(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	f := newFixture(t, url)
	_, hash := f.generate(t)
	source := &panicking{Source: newSource(t, url)}
	authenticator := authn.New(source, 10*time.Second)
	source.broken.Store(true)
	var running sync.WaitGroup
	for range 32 {
		running.Go(func() {
			for range 10 {
				if key, _, err := authenticator.Lookup(t.Context(), hash); err == nil || !strings.Contains(err.Error(), "a bug") {
					t.Errorf("%+v, %v", key, err)
				}
			}
		})
	}
	running.Wait()
	source.broken.Store(false)
	if key, _, err := authenticator.Lookup(t.Context(), hash); err != nil || !key.Active {
		t.Errorf("afterwards: %+v, %v", key, err)
	}
	if err := authenticator.Close(); err != nil {
		t.Error(err)
	}
}
