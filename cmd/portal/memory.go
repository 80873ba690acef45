package main

import (
	"os"
	"runtime/debug"
)

// What the collector aims at unless the environment says otherwise (GOGC, GOMEMLIMIT). The live heap of an instance is a
// few megabytes: at Go's own target of 100 % a busy one would spend a fifth of its time on collecting. The limit makes
// the collector work harder long before a small machine runs out.
const (
	gcPercent   = 400
	memoryLimit = 256 << 20 // bytes
)

func tuneCollector() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memoryLimit)
	}
}
