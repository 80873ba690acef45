package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Defaults of the garbage collector, which GOGC and GOMEMLIMIT override. Because the live heap of
// an instance is a few megabytes, a busy instance would collect garbage 20 times a second with Go's
// default of 100 %. With 100,000 keys in use, the live heap is ten times as large and has hardly
// any pointers to follow. A heap of five times its size would then only waste memory.
const (
	// heapGrowth is how much the heap grows between two collections, in percent of the live
	// heap.
	heapGrowth    = 400
	maxHeapGrowth = 32 << 20 // bytes
	memoryLimit   = 256 << 20
)

// tuneCollector sets the growth of the heap, and adapts it to the live heap each second until ctx
// ends. Until the next second, the memory limit bounds the growth.
func tuneCollector(ctx context.Context) {
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memoryLimit)
	}
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	debug.SetGCPercent(heapGrowth)
	go func() {
		tick := time.Tick(time.Second)
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			metrics.Read(live)
			debug.SetGCPercent(growthOf(live[0].Value.Uint64()))
		}
	}()
}

// growthOf returns by how many percent a heap with so many live bytes may grow.
func growthOf(live uint64) int { return int(min(heapGrowth, 100*maxHeapGrowth/max(live, 1))) }
