package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processTimes are fields of /proc/PID/stat (man 5 proc).
type processTimes struct {
	parent int
	own    time.Duration // CPU time of its threads, in user and kernel mode
	reaped time.Duration // CPU time of its children that have exited
}

func readProcess(pid int) (processTimes, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return processTimes{}, err
	}
	return parseProcess(string(stat))
}

func parseProcess(stat string) (p processTimes, err error) {
	// The program's name, in parentheses, may contain spaces and parentheses.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const parent, userTime, systemTime, childrenUserTime, childrenSystemTime = 1, 11, 12, 13, 14
	if len(fields) <= childrenSystemTime {
		return p, fmt.Errorf("process status %q has too few fields", stat)
	}
	ticks := func(field int) time.Duration {
		n, parseErr := strconv.ParseInt(fields[field], 10, 64)
		err = errors.Join(err, parseErr)
		const tick = time.Second / 100 // USER_HZ, the same on every architecture that Go supports
		return time.Duration(n) * tick
	}
	p.own = ticks(userTime) + ticks(systemTime)
	p.reaped = ticks(childrenUserTime) + ticks(childrenSystemTime)
	if err == nil {
		p.parent, err = strconv.Atoi(fields[parent])
	}
	return p, err
}

// processTree returns the CPU time of a process and its children, including those that have exited,
// and the bytes that they wrote to the disk.
func processTree(pid int) (cpu time.Duration, written int64, err error) {
	parent, err := readProcess(pid)
	if err != nil {
		return 0, 0, err
	}
	if written, err = writtenBytes(pid); err != nil {
		return 0, 0, err
	}
	cpu = parent.own + parent.reaped
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, 0, err
	}
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // not a process
		}
		p, err := readProcess(child)
		var own int64
		if err == nil && p.parent == pid {
			own, err = writtenBytes(child)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has exited in the meantime
		}
		if err != nil {
			return 0, 0, err
		}
		if p.parent == pid {
			cpu += p.own
			written += own
		}
	}
	return cpu, written, nil
}

// writtenBytes returns the bytes that a process and its exited children wrote to the disk.
func writtenBytes(pid int) (int64, error) {
	counters, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/io")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(counters)) {
		if value, found := strings.CutPrefix(line, "write_bytes: "); found {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("no write_bytes in %q", counters)
}

// processorModel returns the model name of the machine's first processor.
func processorModel() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(info)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
