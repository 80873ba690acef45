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

// operation is what a client did with a key.
type operation string

const (
	generate operation = "generate"
	use      operation = "use"
	revoke   operation = "revoke"
	list     operation = "list"
)

// outcome is what the client knows of it afterwards.
type outcome string

const (
	made     outcome = "made"     // generate: the key was shown
	exists   outcome = "exists"   // generate: this form has created the key already
	done     outcome = "done"     // revoke: confirmed
	accepted outcome = "accepted" // use: 200
	refused  outcome = "refused"  // use: 401, the key is revoked
	unknown  outcome = "unknown"  // use: 401, the key is unknown; revoke: 404
	present  outcome = "present"  // list
	absent   outcome = "absent"   // list
	open     outcome = "open"     // a write without a clear answer
	nothing  outcome = "nothing"  // a read without an answer; not part of a history
)

// The states of a key.
const (
	stateAbsent = iota
	stateActive
	stateRevoked
)

type step struct {
	operation operation
	outcome   outcome
}

// keyModel is the register that the package comment describes. An open write may take effect or
// not; that it did not is the case in which it is ordered after everything else.
var keyModel = porcupine.Model{
	Init: func() any { return stateAbsent },
	Step: func(state, input, _ any) (bool, any) {
		switch input.(step) {
		case step{generate, made}:
			return state == stateAbsent, stateActive
		case step{generate, exists}:
			return state != stateAbsent, state
		case step{generate, open}:
			return true, max(state.(int), stateActive)
		case step{revoke, done}:
			return state != stateAbsent, stateRevoked
		case step{revoke, unknown}, step{use, unknown}:
			return state == stateAbsent, state
		case step{revoke, open}:
			if state == stateActive {
				state = stateRevoked
			}
			return true, state
		case step{use, accepted}, step{list, present}:
			return state == stateActive, state
		case step{use, refused}:
			return state == stateRevoked, state
		case step{list, absent}:
			return state != stateActive, state
		}
		panic(fmt.Sprintf("the model does not know %v", input))
	},
}

// unconfirmedModel is a register whose unconfirmed changes can be seen and later be undone. Its
// state is the set of the states that a read may show.
var unconfirmedModel = porcupine.Model{
	Init: func() any { return setOf(stateAbsent) },
	Step: func(state, input, _ any) (bool, any) {
		s := state.(int)
		has := func(states ...int) bool { return s&setOf(states...) != 0 }
		switch input.(step) {
		case step{generate, made}:
			return has(stateAbsent), setOf(stateActive)
		case step{generate, exists}:
			return has(stateActive, stateRevoked), s
		case step{generate, open}:
			if has(stateAbsent) {
				s |= setOf(stateActive)
			}
			return true, s
		case step{revoke, done}:
			return has(stateActive, stateRevoked), setOf(stateRevoked)
		case step{revoke, unknown}, step{use, unknown}:
			return has(stateAbsent), s
		case step{revoke, open}:
			if has(stateActive) {
				s |= setOf(stateRevoked)
			}
			return true, s
		case step{use, accepted}, step{list, present}:
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

// history holds the operations on all keys, by label.
type history struct {
	began time.Time

	mu         sync.Mutex
	operations map[string][]porcupine.Operation
	counts     map[step]int
}

func newHistory() *history {
	return &history{began: time.Now(), operations: map[string][]porcupine.Operation{}, counts: map[step]int{}}
}

// now returns the time as histories have it.
func (h *history) now() int64 { return int64(time.Since(h.began)) }

// add records an operation on the key with this label that began at call and has just returned. The
// client is the portal that answered.
func (h *history) add(label string, portal int, call int64, s step) {
	returned := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[s]++
	if s.outcome == nothing {
		return
	}
	if s.outcome == open {
		returned = math.MaxInt64
	}
	h.operations[label] = append(h.operations[label], porcupine.Operation{ClientId: portal, Input: s, Call: call, Return: returned})
}

// undone is the verdict on a key whose history only [unconfirmedModel] explains.
const undone porcupine.CheckResult = "Undone"

// verdicts are the results of checking a history.
type verdicts struct {
	counts     map[porcupine.CheckResult]int
	violations map[porcupine.CheckResult][]string // the histories of keys that failed, as text
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

// describe lists the operations in the order in which they began. It leaves out uses that repeat
// the outcome before them.
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
			fmt.Fprintf(&text, "    and %d more of these\n", repeated)
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
