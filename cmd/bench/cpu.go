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

// processTimes is what Linux knows of a process (man 5 proc, /proc/PID/stat).
type processTimes struct {
	parent int
	own    time.Duration // CPU time of its threads, in user and kernel mode
	reaped time.Duration // the same of its children that have ended
}

func readProcess(pid int) (processTimes, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return processTimes{}, err
	}
	return parseProcess(string(stat))
}

func parseProcess(stat string) (p processTimes, err error) {
	// The program's name, in parentheses, may hold anything.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const parent, userTime, systemTime, childrenUserTime, childrenSystemTime = 1, 11, 12, 13, 14
	if len(fields) <= childrenSystemTime {
		return p, fmt.Errorf("process status %q has too few fields", stat)
	}
	ticks := func(field int) time.Duration {
		n, parseErr := strconv.ParseInt(fields[field], 10, 64)
		err = errors.Join(err, parseErr)
		const tick = time.Second / 100 // USER_HZ, the same on every architecture that Go knows
		return time.Duration(n) * tick
	}
	p.own = ticks(userTime) + ticks(systemTime)
	p.reaped = ticks(childrenUserTime) + ticks(childrenSystemTime)
	if err == nil {
		p.parent, err = strconv.Atoi(fields[parent])
	}
	return p, err
}

// familyCPU returns the CPU time of a process and all its children, those that
// have ended included.
func familyCPU(pid int) (time.Duration, error) {
	family, err := readProcess(pid)
	if err != nil {
		return 0, err
	}
	sum := family.own + family.reaped
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // not a process
		}
		p, err := readProcess(child)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return 0, err
		}
		if p.parent == pid {
			sum += p.own
		}
	}
	return sum, nil
}

// processorModel returns what the machine calls its processor.
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
