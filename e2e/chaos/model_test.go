package chaos

import (
	"math"
	"testing"

	"github.com/anishathalye/porcupine"
)

// at returns an operation that began and returned at these times. An indeterminate one never
// returns.
func at(call, returned int64, o operation, result outcome) porcupine.Operation {
	if result == indeterminate {
		returned = math.MaxInt64
	}
	return porcupine.Operation{Input: step{o, result}, Call: call, Return: returned}
}

func TestModel(t *testing.T) {
	for _, test := range []struct {
		name    string
		want    porcupine.CheckResult
		history []porcupine.Operation
	}{
		{"a whole life", porcupine.Ok, []porcupine.Operation{
			at(0, 1, list, absent), at(2, 3, generate, created), at(4, 5, use, accepted), at(6, 7, list, present),
			at(8, 9, revoke, confirmed), at(10, 11, use, refused), at(12, 13, list, absent), at(14, 15, revoke, confirmed),
		}},
		{"a use during the revocation", porcupine.Ok, []porcupine.Operation{
			at(0, 1, generate, created), at(2, 9, revoke, confirmed), at(3, 4, use, refused), at(2, 5, use, accepted),
		}},
		{"accepted after the confirmation", porcupine.Illegal, []porcupine.Operation{
			at(0, 1, generate, created), at(2, 3, revoke, confirmed), at(4, 5, use, accepted),
		}},
		{"accepted after a refusal", porcupine.Illegal, []porcupine.Operation{
			at(0, 1, generate, created), at(2, 9, revoke, confirmed), at(3, 4, use, refused), at(5, 6, use, accepted),
		}},
		{"listed after the confirmation", porcupine.Illegal, []porcupine.Operation{
			at(0, 1, generate, created), at(2, 3, revoke, confirmed), at(4, 5, list, present),
		}},
		{"missing in the list", porcupine.Illegal, []porcupine.Operation{
			at(0, 1, generate, created), at(2, 3, list, absent),
		}},
		{"a shown key that is lost", porcupine.Illegal, []porcupine.Operation{
			at(0, 1, generate, created), at(2, 3, use, unknown),
		}},
		{"refused without a revocation", porcupine.Illegal, []porcupine.Operation{
			at(0, 1, generate, created), at(2, 3, use, refused),
		}},
		{"an open revocation that never happens", porcupine.Ok, []porcupine.Operation{
			at(0, 1, generate, created), at(2, 0, revoke, indeterminate), at(4, 5, use, accepted),
		}},
		{"an open revocation that happens late", porcupine.Ok, []porcupine.Operation{
			at(0, 1, generate, created), at(2, 0, revoke, indeterminate), at(4, 5, use, accepted), at(6, 7, use, refused),
		}},
		{"an open revocation that is undone", undone, []porcupine.Operation{
			at(0, 1, generate, created), at(2, 0, revoke, indeterminate), at(4, 5, use, refused), at(6, 7, use, accepted),
		}},
		{"a confirmed revocation that is undone", porcupine.Illegal, []porcupine.Operation{
			at(0, 1, generate, created), at(2, 0, revoke, indeterminate), at(4, 5, revoke, confirmed), at(6, 7, use, accepted),
		}},
		{"a checked revocation that is undone", porcupine.Illegal, []porcupine.Operation{
			at(0, 1, generate, created), at(2, 0, revoke, indeterminate), at(4, 5, check, confirmed), at(6, 7, use, accepted),
		}},
		{"a check before an open revocation that happens late", porcupine.Ok, []porcupine.Operation{
			at(0, 1, generate, created), at(2, 0, revoke, indeterminate), at(4, 5, check, present), at(6, 7, check, confirmed),
		}},
		{"an open generation that happened", porcupine.Ok, []porcupine.Operation{
			at(0, 0, generate, indeterminate), at(2, 3, generate, exists), at(4, 5, list, present), at(6, 7, revoke, confirmed),
		}},
		{"an open generation that did not", porcupine.Ok, []porcupine.Operation{
			at(0, 0, generate, indeterminate), at(2, 3, list, absent), at(4, 5, generate, created), at(6, 7, use, accepted),
		}},
		{"an open generation that is undone", undone, []porcupine.Operation{
			at(0, 0, generate, indeterminate), at(2, 3, generate, exists), at(4, 5, list, absent),
		}},
		{"generated twice", porcupine.Illegal, []porcupine.Operation{
			at(0, 1, generate, created), at(2, 3, generate, created),
		}},
	} {
		if got := judge(test.history); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
