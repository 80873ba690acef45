package main

import (
	"time"

	"github.com/prometheus/procfs"
)

// cpuOf returns the CPU time of a process and its children, in user and kernel mode, including the
// children that have exited.
func cpuOf(pid int) time.Duration {
	processes, _ := procfs.AllProcs()
	ticks := 0
	for _, process := range processes {
		stat, _ := process.Stat() // zero if the process has exited
		if stat.PID == pid {
			ticks += stat.CUTime + stat.CSTime
		}
		if stat.PID == pid || stat.PPID == pid {
			ticks += int(stat.UTime + stat.STime)
		}
	}
	// USER_HZ is the same on every architecture that Go supports.
	return time.Duration(ticks) * time.Second / 100
}
