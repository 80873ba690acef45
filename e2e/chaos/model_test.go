package chaos

import (
	"math"
	"testing"

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
	restore  operation = "restore"
)

// outcome is the result of an operation, as far as the client knows it.
type outcome string

const (
	created outcome = "created" // generate: the key was shown
	// Generate: 409, the form has already created the key.
	exists        outcome = "exists"
	confirmed     outcome = "confirmed"     // revoke, check: the key was revoked
	accepted      outcome = "accepted"      // use: 200
	refused       outcome = "refused"       // use: 401, the key is revoked; revoke: an access token's key is gone
	unknown       outcome = "unknown"       // use: 401, the key is unknown; revoke, check: 404
	present       outcome = "present"       // list; check: the key is still active
	absent        outcome = "absent"        // list
	indeterminate outcome = "indeterminate" // a write that may or may not have taken effect
	noResponse    outcome = "no response"   // not part of a history
	lost          outcome = "lost"          // restore: the key is not in the backup
	ended         outcome = "ended"         // restore: this is an access token
)

// step is the input of the model.
type step struct {
	operation operation
	outcome   outcome
}

// states is a set of states of a key.
type states int

const (
	isAbsent states = 1 << iota
	isActive
	isRevoked
)

// rules say in which states a step is possible, and the state after it, or 0 if that is the same.
var rules = map[step]struct{ before, after states }{
	{generate, created}:       {isAbsent, isActive},
	{generate, exists}:        {isActive | isRevoked, 0},
	{generate, indeterminate}: {isAbsent, isActive},
	{revoke, confirmed}:       {isActive | isRevoked, isRevoked},
	{revoke, unknown}:         {isAbsent, 0},
	{revoke, refused}:         {isRevoked, 0},
	{revoke, indeterminate}:   {isActive, isRevoked},
	{check, confirmed}:        {isRevoked, isRevoked},
	{check, present}:          {isActive, 0},
	{check, unknown}:          {isAbsent, 0},
	{use, accepted}:           {isActive, 0},
	{use, refused}:            {isRevoked, 0},
	{use, unknown}:            {isAbsent, 0},
	{list, present}:           {isActive, 0},
	{list, absent}:            {isAbsent | isRevoked, 0},
	{restore, lost}:           {isActive | isRevoked, isAbsent},
	{restore, ended}:          {isActive | isRevoked, isRevoked},
}

// newModel returns the model in the package comment. If lossy is set, the database can lose
// unconfirmed changes after reads have returned them: the state is then the set of states that a
// read may return. An indeterminate write never returns, so Porcupine orders one without an effect
// after all other operations.
func newModel(lossy bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return isAbsent },
		Step: func(state, input, _ any) (bool, any) {
			now, s := state.(states), input.(step)
			rule, possible := rules[s], now&rules[s].before != 0
			switch {
			case s.outcome == indeterminate && possible && lossy:
				return true, now | rule.after
			case (s.outcome == indeterminate || s.operation == restore) && !possible:
				return true, now
			case s.operation == restore:
				return true, now&isAbsent | rule.after
			case rule.after != 0:
				return possible, rule.after
			}
			return possible, now
		},
	}
}

// undone is the verdict on a history that only the lossy model allows.
const undone porcupine.CheckResult = "Undone"

func judge(operations []porcupine.Operation) porcupine.CheckResult {
	result := porcupine.CheckOperationsTimeout(newModel(false), operations, checkTimeout)
	if result == porcupine.Illegal &&
		porcupine.CheckOperationsTimeout(newModel(true), operations, checkTimeout) == porcupine.Ok {
		return undone
	}
	return result
}

// at returns an operation that began and returned at these times. An indeterminate one never
// returns.
func at(call, returned int64, o operation, result outcome) porcupine.Operation {
	if result == indeterminate {
		returned = math.MaxInt64
	}
	return porcupine.Operation{Input: step{o, result}, Call: call, Return: returned}
}

func TestModel(t *testing.T) {
	generated := at(0, 1, generate, created)
	revoked, open := at(2, 3, revoke, confirmed), at(2, 0, revoke, indeterminate)
	openGeneration := at(0, 0, generate, indeterminate)
	for name, test := range map[string]struct {
		want    porcupine.CheckResult
		history []porcupine.Operation
	}{
		"a whole life": {porcupine.Ok, []porcupine.Operation{
			at(-2, -1, list, absent), generated, at(2, 3, use, accepted), at(4, 5, list, present),
			at(6, 7, revoke, confirmed), at(8, 9, use, refused), at(8, 9, list, absent),
			at(10, 11, revoke, confirmed),
		}},
		"a use during the revocation": {porcupine.Ok, []porcupine.Operation{
			generated, at(2, 9, revoke, confirmed), at(3, 4, use, refused), at(2, 5, use, accepted),
		}},
		"accepted after the confirmation": {porcupine.Illegal, []porcupine.Operation{
			generated, revoked, at(4, 5, use, accepted),
		}},
		"accepted after a refusal": {porcupine.Illegal, []porcupine.Operation{
			generated, at(2, 9, revoke, confirmed), at(3, 4, use, refused), at(5, 6, use, accepted),
		}},
		"listed after the confirmation": {porcupine.Illegal, []porcupine.Operation{
			generated, revoked, at(4, 5, list, present),
		}},
		"missing in the list": {porcupine.Illegal, []porcupine.Operation{
			generated, at(2, 3, list, absent),
		}},
		"a shown key that is lost": {porcupine.Illegal, []porcupine.Operation{
			generated, at(2, 3, use, unknown),
		}},
		"refused without a revocation": {porcupine.Illegal, []porcupine.Operation{
			generated, at(2, 3, use, refused),
		}},
		"generated twice": {porcupine.Illegal, []porcupine.Operation{
			generated, at(2, 3, generate, created),
		}},
		"an open revocation that never happens": {porcupine.Ok, []porcupine.Operation{
			generated, open, at(4, 5, use, accepted),
		}},
		"an open revocation that happens late": {porcupine.Ok, []porcupine.Operation{
			generated, open, at(4, 5, use, accepted), at(6, 7, use, refused),
		}},
		"an open revocation that is undone": {undone, []porcupine.Operation{
			generated, open, at(4, 5, use, refused), at(6, 7, use, accepted),
		}},
		"a confirmed revocation that is undone": {porcupine.Illegal, []porcupine.Operation{
			generated, open, at(4, 5, revoke, confirmed), at(6, 7, use, accepted),
		}},
		"a checked revocation that is undone": {porcupine.Illegal, []porcupine.Operation{
			generated, open, at(4, 5, check, confirmed), at(6, 7, use, accepted),
		}},
		"a check before an open revocation that happens late": {porcupine.Ok, []porcupine.Operation{
			generated, open, at(4, 5, check, present), at(6, 7, check, confirmed),
		}},
		"an open generation that happened": {porcupine.Ok, []porcupine.Operation{
			openGeneration, at(2, 3, generate, exists), at(4, 5, list, present), at(6, 7, revoke, confirmed),
		}},
		"an open generation that did not": {porcupine.Ok, []porcupine.Operation{
			openGeneration, at(2, 3, list, absent), at(4, 5, generate, created), at(6, 7, use, accepted),
		}},
		"an open generation that is undone": {undone, []porcupine.Operation{
			openGeneration, at(2, 3, generate, exists), at(4, 5, list, absent),
		}},
		"a key that a restore loses": {porcupine.Ok, []porcupine.Operation{
			generated, at(2, 5, restore, lost), at(3, 4, use, accepted), at(6, 7, use, unknown), at(6, 7, list, absent), at(8, 9, revoke, unknown),
		}},
		"a lost key that comes back": {porcupine.Illegal, []porcupine.Operation{
			generated, at(2, 5, restore, lost), at(6, 7, use, accepted),
		}},
		"an access token after a restore": {porcupine.Illegal, []porcupine.Operation{
			generated, at(2, 5, restore, ended), at(6, 7, use, accepted),
		}},
		"a key that is generated after a restore": {porcupine.Ok, []porcupine.Operation{
			at(-5, -4, restore, lost), at(-5, -4, restore, ended), generated, at(2, 3, use, accepted),
		}},
	} {
		if got := judge(test.history); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
