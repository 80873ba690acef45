// Package chaos breaks a whole deployment and checks that it keeps its promises.
//
// Three portal processes serve from a PostgreSQL primary with one synchronous standby. Clients sign
// in and generate, use, revoke and list keys over HTTP, through the pages' forms and the JSON API.
// A nemesis injects one fault after the other. Everything listens on loopback.
//
// # The model
//
// Each key is a register with the states absent, active and revoked, in this order. Porcupine
// checks that the history of each key is linearizable:
//
//   - a use that is answered 200 needs the state active; 401 "unknown" needs absent, and 401
//     "revoked" needs revoked; 503 and no answer say nothing;
//   - a list shows the active keys and no others;
//   - a generated key that is shown goes from absent to active, and a confirmed revocation leaves
//     the key revoked;
//   - a write that was answered 503, or not at all, stays open: it may take effect at any later
//     time, or never.
//
// A verdict of Unknown, which is Porcupine's timeout, fails the test. So does a key that exists
// twice, an answer that the contract does not know, a portal that panics, a deployment that does
// not serve again within [recoveryLimit] after a fault has ended, and a portal that does not serve
// within [othersLimit] while a fault touches another one.
//
// One verdict is ours. "Undone" means that a change without confirmation was seen and later undone:
// the key was refused, say, and then accepted again. It fails, unless the fault that can cause it
// was injected. PostgreSQL shows a commit whose wait for the standby was cancelled, and loses it
// with the server. The client knows from the 503 that the change is not confirmed.
//
// # The deployment
//
// Both servers have synchronous_standby_names='*' and synchronous_commit=on: a commit is
// acknowledged when the other server has it on disk, so that the loss of either loses nothing. With
// one server left, writes wait and are answered 503. The level remote_apply would make the standby
// readable sooner, but portals read from the primary alone. DATABASE_URL names both servers.
//
// Each portal reaches each server by a link, a TCP proxy in this process, and the standby reaches
// the primary by another one. A link can be cut, delayed or silent, and can lose the answer to a
// COMMIT. A failover first kills every process of the old primary and waits until they are gone,
// then promotes the standby, and then makes a new standby by pg_basebackup. Kills end processes,
// not the machine's power: what a process has written to a file survives it.
//
// As root, each server has its data on a small tmpfs of its own, which a fault fills. Other users
// cannot mount one; for them this fault is left out, and the log says so.
//
// # The proof of the harness
//
// The same clients then run against the program built with the tag "stale", which trusts its memory
// for one second. The test fails unless Porcupine reports that as a violation.
//
// # Running it
//
// "make test" runs a short one, "make chaos" one of ten minutes with all faults. The tables at the
// end count operations by kind and outcome, faults by kind with the time until all portals served
// again after each, and verdicts. "Others" is the longest time that a whole life of a key took
// through the portals that a fault did not touch, while it lasted. "Sprung" counts how often a
// connection met a fault that waits for a COMMIT. The seed is printed first; with it,
//
//	go test ./e2e/chaos -args -seed N
//
// repeats the order of faults and the choices of the clients, but not the scheduling of the
// processes. A violation is printed as the history of its key.
package chaos
