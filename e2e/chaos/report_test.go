package chaos

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	checkTimeout = 2 * time.Minute // for each key
	maxFailures  = 20              // reported ones
	operator     = portals         // the client id of an operator in a history
)

// report records the operations on each key by its label, and collects the failures of a run.
type report struct {
	began time.Time
	lossy bool // a fault could undo unconfirmed changes: see the package comment

	mu         sync.Mutex
	operations map[string][]porcupine.Operation
	tokens     map[string][]string // the labels of the access tokens of a key, by its label
	open       map[string]bool     // a revocation of the key or the token had no clear outcome
	counts     map[step]int
	restores   []restored
	failures   []string // outside the histories
}

// restored is a restore of a backup that has the keys with these labels.
type restored struct {
	call, returned int64
	labels         map[string]bool
}

func newReport() *report {
	return &report{
		began: time.Now(), operations: map[string][]porcupine.Operation{}, counts: map[step]int{}, tokens: map[string][]string{}, open: map[string]bool{},
	}
}

// now returns the nanoseconds since the run began.
func (r *report) now() int64 { return int64(time.Since(r.began)) }

// add records an operation on the key with this label. It began at call and has just returned. Its
// client id in the history is the number of the portal. A revocation is also one of the key's
// access tokens.
func (r *report) add(label string, portal int, call int64, s step) {
	returned := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[s]++
	if s.outcome == noResponse {
		return
	}
	r.append(label, portal, call, returned, s)
	if s.operation == revoke && s.outcome != unknown || s.operation == check && s.outcome == confirmed {
		for _, token := range r.tokens[label] {
			r.append(token, portal, call, returned, s)
		}
	}
}

// addToken records that an access token of a key was issued. A revocation without a clear outcome
// may still end it.
func (r *report) addToken(label, token string, portal int, call int64) {
	returned := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := step{generate, created}
	r.counts[s]++
	r.append(token, portal, call, returned, s)
	isOpen := func(earlier string) bool { return r.open[earlier] }
	if isOpen(label) || slices.ContainsFunc(r.tokens[label], isOpen) {
		r.append(token, portal, call, returned, step{revoke, indeterminate})
	}
	r.tokens[label] = append(r.tokens[label], token)
}

// addRestore records a restore.
func (r *report) addRestore(of restored) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.restores = append(r.restores, of)
}

// append adds an operation to a history. The mutex is locked.
func (r *report) append(label string, portal int, call, returned int64, s step) {
	if s.outcome == indeterminate {
		returned = math.MaxInt64
	}
	if s == (step{revoke, indeterminate}) {
		r.open[label] = true
	}
	r.operations[label] = append(r.operations[label],
		porcupine.Operation{ClientId: portal, Input: s, Call: call, Return: returned})
}

// failure records a failure outside the histories.
func (r *report) failure(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failures) < maxFailures && !slices.Contains(r.failures, text) {
		r.failures = append(r.failures, text)
	}
}

// verdicts are the formatted histories of the keys by verdict. Those of [porcupine.Ok] are empty.
type verdicts map[porcupine.CheckResult][]string

// check checks the history of every key.
func (r *report) check() verdicts {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := verdicts{}
	isToken := map[string]bool{}
	for _, tokens := range r.tokens {
		for _, token := range tokens {
			isToken[token] = true
		}
	}
	for label, operations := range r.operations {
		operations = append(operations, r.restoresOf(label, isToken[label])...)
		result, text := judge(operations), ""
		if result != porcupine.Ok {
			text = fmt.Sprintf("%s: key %s\n%s", result, label, describe(operations))
		}
		v[result] = append(v[result], text)
	}
	return v
}

// restoresOf returns the effects of the restores on a key or an access token.
func (r *report) restoresOf(label string, isToken bool) (operations []porcupine.Operation) {
	for _, restored := range r.restores {
		effect := lost
		if isToken {
			effect = ended
		}
		if isToken || !restored.labels[label] {
			operations = append(operations, porcupine.Operation{
				ClientId: operator, Input: step{restore, effect}, Call: restored.call, Return: restored.returned,
			})
		}
	}
	return operations
}

// describe formats the operations in the order in which they began, without immediate repetitions.
func describe(operations []porcupine.Operation) string {
	slices.SortStableFunc(operations, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var text strings.Builder
	for i, o := range operations {
		if i > 0 && i < len(operations)-1 && o.Input == operations[i-1].Input {
			continue
		}
		end := "never"
		if o.Return != math.MaxInt64 {
			end = seconds(time.Duration(o.Return))
		}
		by := fmt.Sprintf("portal %d", o.ClientId)
		if o.ClientId == operator {
			by = "operator"
		}
		fmt.Fprintf(&text, "    %8s to %8s  %s  %v\n", seconds(time.Duration(o.Call)), end, by, o.Input)
	}
	return text.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }
