package api

import "testing"

func TestPolicyGivesTheBurstAndTheTimeToRefillIt(t *testing.T) {
	for limit, want := range map[RateLimit]string{
		{PerSecond: 50, Burst: 100}:      `"key";q=100;w=2`,
		{PerSecond: 50, Burst: 101}:      `"key";q=101;w=3`,
		{PerSecond: 100, Burst: 1}:       `"key";q=1;w=1`,
		{PerSecond: 1, Burst: 60}:        `"key";q=60;w=60`,
		{PerSecond: 1_000_000, Burst: 1}: `"key";q=1;w=1`,
		{PerSecond: 1, Burst: 1_000_000}: `"key";q=1000000;w=1000000`,
	} {
		if got := newRateLimiter("key", "", limit, nil).policy; got != want {
			t.Errorf("%v: %s, want %s", limit, got, want)
		}
	}
}
