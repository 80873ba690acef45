// Package chaos injects faults into a whole deployment and checks that it stays consistent.
//
// Three portal processes use a PostgreSQL primary with one synchronous standby. Clients sign in and
// generate, use, revoke and list keys over HTTP, through the pages' forms and the JSON API. A
// nemesis injects one fault after the other. All processes listen on loopback.
//
// # The model
//
// Each key is a register with the states absent, active and revoked, in this order. Porcupine
// checks that the history of each key is linearizable:
//
//   - A use with status 200 requires the state active. A 401 "unknown" requires absent, and a 401
//     "revoked" requires revoked. A 503 and a lost response prove nothing.
//   - A list contains exactly the active keys.
//   - The check after a revocation without a clear outcome confirms it only in the state revoked.
//   - A response that reveals a generated key changes the state from absent to active. A confirmed
//     revocation changes it to revoked.
//
// A third of the keys have a trust rule in place of a secret. Each of their access tokens is a
// register of its own, which the exchange changes to active. A revocation of the key and a saved
// rule are its revocations.
//   - A write with a 503 or a lost response is indeterminate: it may take effect at any later time,
//     or never.
//   - A restore of a backup changes a key that is not in the backup to absent, and ends all access
//     tokens. A revoked key stays revoked.
//
// These fail the test too: Porcupine's verdict Unknown, which is its timeout; two keys from one
// form; an unexpected response; a panic of a portal; a deployment that does not serve within
// [recoveryLimit] after a fault; and a portal that does not serve within [unaffectedLimit] while a
// fault affects another one.
//
// One verdict is our own. "Undone" means that clients saw a change without confirmation, and that
// the change was later undone. For example, a key was refused and then accepted again. This fails
// the test unless the fault that can cause it was injected: PostgreSQL makes a commit visible when
// its wait for the standby is canceled, and loses the commit if the primary is lost. The client got
// a 503, so the change was never confirmed.
//
// # The deployment
//
// Both servers have synchronous_standby_names='*', and a synchronous_commit=off that the portals
// must not adopt: they set it to on. A commit is confirmed when both servers have written it to
// disk, so the loss of one server loses no confirmed change.
// While only one server runs, writes wait and get a 503. The level remote_apply would make changes
// visible on the standby sooner, but portals read only from the primary. DATABASE_URL names both
// servers.
//
// Each portal reaches each server through a link, which is a TCP proxy in this process. The standby
// reaches the primary through another link. A link can be cut or silent, can lose the response to a
// COMMIT, and can stall before it. A failover first kills every process of the old primary and
// waits until all have exited. It then promotes the standby and creates a new standby with
// pg_basebackup. A kill ends processes and does not simulate a power failure: written files survive
// it, so the servers do without fsync.
//
// A second part loses the primary and runs the commands of "Fail over" in the operators' guide.
//
// # The proof of the harness
//
// The same clients run against a program with the build tag "stale", which trusts its cache of
// keys for one second. The test fails unless Porcupine reports a violation.
//
// # Running it
//
// "make test" runs this package beside the browser tests, with half of the faults, once each. "make
// chaos" injects all of them for ten minutes. The log begins with the seed. It has a line for each
// fault, the number of operations by kind and outcome, and the number of keys by verdict. A
// violation is printed as the history of its key. This command repeats the order of faults and the
// choices of the clients, but not the scheduling of the processes:
//
//	go test ./e2e/chaos -args -seed N
package chaos
