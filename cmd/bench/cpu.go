package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cpuOf returns the CPU time of a process and its children, in user and kernel mode, including the
// children that have exited.
func cpuOf(pid int) (cpu time.Duration) {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, path := range paths {
		stat, _ := os.ReadFile(path) //nolint:gosec // empty if the process has exited
		own, reaped, parent := parseStat(stat)
		if path == "/proc/"+strconv.Itoa(pid)+"/stat" {
			cpu += own + reaped
		} else if parent == pid {
			cpu += own
		}
	}
	return cpu
}

// parseStat reads /proc/PID/stat (man 5 proc): the CPU time of the process, that of its children
// that have exited, and the id of its parent.
func parseStat(stat []byte) (own, reaped time.Duration, parent int) {
	// The program's name, in parentheses, may contain spaces and parentheses.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var numbers [15]int
	for i := range min(len(fields), len(numbers)) {
		numbers[i], _ = strconv.Atoi(fields[i])
	}
	const tick = time.Second / 100 // USER_HZ, the same on every architecture that Go supports
	return time.Duration(numbers[11]+numbers[12]) * tick, time.Duration(numbers[13]+numbers[14]) * tick, numbers[1]
}
