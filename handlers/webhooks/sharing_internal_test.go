package webhooks

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"portal/models/webhooks"
)

// Receivers that hang leave room for another endpoint of their account and for another account.
// Those of many accounts fill an instance, but the next one that ends makes room for another
// account.
func TestReceiversThatHangLeaveRoom(t *testing.T) {
	for _, accounts := range []int{1, 2, 4, 10} {
		s := &Sender{attempts: map[uuid.UUID]map[uuid.UUID]int{}}
		begin := func(account, endpoint uuid.UUID) bool {
			endpoints, accounts, free := s.busy()
			if !free || slices.Contains(accounts, account) || slices.Contains(endpoints, endpoint) {
				return false
			}
			s.count(webhooks.Delivery{AccountID: account, EndpointID: endpoint}, 1)
			return true
		}
		var hanging []webhooks.Delivery
		for range accounts {
			account := uuid.New()
			for range webhooks.MaxWebhooks - 1 {
				hanging = append(hanging, webhooks.Delivery{AccountID: account, EndpointID: uuid.New()})
			}
		}
		begun := 0
		for again := true; again; {
			again = false
			for _, d := range hanging {
				for begin(d.AccountID, d.EndpointID) {
					begun, again = begun+1, true
				}
			}
		}
		first := hanging[0]
		if accounts == 1 && (begun < 15 || !begin(first.AccountID, uuid.New())) {
			t.Errorf("one account has %d attempts and no room for another endpoint", begun)
		}
		if begun == maxAttempts {
			s.count(first, -1)
			if begin(first.AccountID, first.EndpointID) {
				t.Errorf("%d accounts: an account with many attempts takes the place", accounts)
			}
		}
		if !begin(uuid.New(), uuid.New()) {
			t.Errorf("%d accounts: no room for another account, with %d attempts", accounts, begun)
		}
		for account, attempts := range s.attempts {
			for _, n := range attempts {
				if n > maxEndpointAttempts {
					t.Errorf("%d attempts of an endpoint of %s", n, account)
				}
			}
		}
	}
}
