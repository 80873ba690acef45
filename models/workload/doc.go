// Package workload knows who may use a key without a secret: the trust rule of the key, the
// platforms that give their workloads tokens, and these tokens. It knows neither keys nor the
// database, and imports models/keyset only.
package workload
