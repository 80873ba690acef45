package main

import (
	"os"
	"runtime/debug"
)

// Defaults of the garbage collector, which GOGC and GOMEMLIMIT override. The live heap of an
// instance is a few megabytes, so with Go's default of 100 % a busy instance would spend a fifth of
// its time collecting garbage. The memory limit protects small machines.
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
