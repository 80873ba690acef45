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

// operation is the kind of a request about a key.
type operation string

const (
	generate operation = "generate"
	use      operation = "use"
	revoke   operation = "revoke"
	list     operation = "list"
	check    operation = "check" // of a revocation without a clear outcome
)

// outcome is the result of an operation, as far as the client knows it.
type outcome string

const (
	created       outcome = "created"       // generate: the key was shown
	exists        outcome = "exists"        // generate: 409, the form has already created the key
	confirmed     outcome = "confirmed"     // revoke, check: the key was revoked
	accepted      outcome = "accepted"      // use: 200
	refused       outcome = "refused"       // use: 401, the key is revoked
	unknown       outcome = "unknown"       // use: 401, the key is unknown; revoke, check: 404
	present       outcome = "present"       // list; check: the key is still active
	absent        outcome = "absent"        // list
	indeterminate outcome = "indeterminate" // a write that may or may not have taken effect
	noResponse    outcome = "no response"   // a request without an effect or a result; not part of a history
)

// The states of a key.
const (
	stateAbsent = iota
	stateActive
	stateRevoked
)

// step is the input of the models.
type step struct {
	operation operation
	outcome   outcome
}

// keyModel is the model in the package comment. An indeterminate write never returns. If it had no
// effect, Porcupine orders it after all other operations.
var keyModel = porcupine.Model{
	Init: func() any { return stateAbsent },
	Step: func(state, input, _ any) (bool, any) {
		switch input.(step) {
		case step{generate, created}:
			return state == stateAbsent, stateActive
		case step{generate, exists}:
			return state != stateAbsent, state
		case step{generate, indeterminate}:
			return true, max(state.(int), stateActive)
		case step{revoke, confirmed}:
			return state != stateAbsent, stateRevoked
		case step{revoke, unknown}, step{use, unknown}, step{check, unknown}:
			return state == stateAbsent, state
		case step{revoke, indeterminate}:
			if state == stateActive {
				state = stateRevoked
			}
			return true, state
		case step{use, accepted}, step{list, present}, step{check, present}:
			return state == stateActive, state
		case step{use, refused}, step{check, confirmed}:
			return state == stateRevoked, state
		case step{list, absent}:
			return state != stateActive, state
		}
		panic(fmt.Sprintf("the model does not know %v", input))
	},
}

// unconfirmedModel is [keyModel] in a database that can lose unconfirmed changes after reads have
// returned them. Its state is the set of states that a read may return.
var unconfirmedModel = porcupine.Model{
	Init: func() any { return setOf(stateAbsent) },
	Step: func(state, input, _ any) (bool, any) {
		s := state.(int)
		has := func(states ...int) bool { return s&setOf(states...) != 0 }
		switch input.(step) {
		case step{generate, created}:
			return has(stateAbsent), setOf(stateActive)
		case step{generate, exists}:
			return has(stateActive, stateRevoked), s
		case step{generate, indeterminate}:
			if has(stateAbsent) {
				s |= setOf(stateActive)
			}
			return true, s
		case step{revoke, confirmed}:
			return has(stateActive, stateRevoked), setOf(stateRevoked)
		case step{check, confirmed}:
			return has(stateRevoked), setOf(stateRevoked)
		case step{revoke, unknown}, step{use, unknown}, step{check, unknown}:
			return has(stateAbsent), s
		case step{revoke, indeterminate}:
			if has(stateActive) {
				s |= setOf(stateRevoked)
			}
			return true, s
		case step{use, accepted}, step{list, present}, step{check, present}:
			return has(stateActive), s
		case step{use, refused}:
			return has(stateRevoked), s
		case step{list, absent}:
			return has(stateAbsent, stateRevoked), s
		}
		panic(fmt.Sprintf("the model does not know %v", input))
	},
}

func setOf(states ...int) (set int) {
	for _, state := range states {
		set |= 1 << state
	}
	return set
}

// history records the operations on each key, by the key's label.
type history struct {
	began time.Time

	mu         sync.Mutex
	operations map[string][]porcupine.Operation
	counts     map[step]int
}

func newHistory() *history {
	return &history{began: time.Now(), operations: map[string][]porcupine.Operation{}, counts: map[step]int{}}
}

// now returns the nanoseconds since the history began.
func (h *history) now() int64 { return int64(time.Since(h.began)) }

// add records an operation on the key with this label. It began at call and has just returned. Its
// client id in the history is the number of the portal.
func (h *history) add(label string, portal int, call int64, s step) {
	returned := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[s]++
	if s.outcome == noResponse {
		return
	}
	if s.outcome == indeterminate {
		returned = math.MaxInt64
	}
	h.operations[label] = append(h.operations[label], porcupine.Operation{ClientId: portal, Input: s, Call: call, Return: returned})
}

// undone is the verdict on a history that fits only [unconfirmedModel].
const undone porcupine.CheckResult = "Undone"

// verdicts are the results of checking a history.
type verdicts struct {
	counts     map[porcupine.CheckResult]int
	violations map[porcupine.CheckResult][]string // failed histories, formatted
}

// check checks the history of every key.
func (h *history) check() verdicts {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := verdicts{counts: map[porcupine.CheckResult]int{}, violations: map[porcupine.CheckResult][]string{}}
	for label, operations := range h.operations {
		result := judge(operations)
		v.counts[result]++
		if result != porcupine.Ok {
			v.violations[result] = append(v.violations[result], fmt.Sprintf("%s: key %s\n%s", result, label, describe(operations)))
		}
	}
	return v
}

func judge(operations []porcupine.Operation) porcupine.CheckResult {
	result := porcupine.CheckOperationsTimeout(keyModel, operations, checkTimeout)
	if result == porcupine.Illegal && porcupine.CheckOperationsTimeout(unconfirmedModel, operations, checkTimeout) == porcupine.Ok {
		return undone
	}
	return result
}

// describe formats the operations in the order in which they began. It counts repeated operations
// instead of listing each.
func describe(operations []porcupine.Operation) string {
	slices.SortStableFunc(operations, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var text strings.Builder
	var last any
	repeated := 0
	for i, o := range operations {
		if o.Input == last && i < len(operations)-1 {
			repeated++
			continue
		}
		if repeated > 0 {
			fmt.Fprintf(&text, "    repeated %d more times\n", repeated)
			repeated = 0
		}
		last = o.Input
		end := "never"
		if o.Return != math.MaxInt64 {
			end = seconds(time.Duration(o.Return))
		}
		s := o.Input.(step)
		fmt.Fprintf(&text, "    %8s to %8s  portal %d  %s %s\n", seconds(time.Duration(o.Call)), end, o.ClientId, s.operation, s.outcome)
	}
	return text.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }
