package simulation

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"syscall"
	"unsafe"
)

// setThreadPriorities makes the operating system run Go's monitor thread only if nothing else needs
// a processor (SCHED_IDLE), and the other threads before those of other programs (SCHED_RR). It
// changes nothing that it has no right to change. The monitor preempts a goroutine that it has seen
// running for 10 ms of real time. That includes the time for which other programs use the
// processor, so on a busy machine two runs of a seed would differ. The monitor is the first thread
// that a process starts.
func setThreadPriorities() {
	entries, _ := os.ReadDir("/proc/self/task")
	var threads []int
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil && id != os.Getpid() {
			threads = append(threads, id)
		}
	}
	if len(threads) == 0 {
		return
	}
	const schedRoundRobin, schedIdle = 2, 5
	monitor := slices.MinFunc(threads, cmp.Compare[int])
	for _, id := range append(threads, os.Getpid()) {
		if id != monitor {
			setPolicy(id, schedRoundRobin, 1)
		}
	}
	setPolicy(monitor, schedIdle, 0)
}

// setPolicy sets the scheduling policy of a thread. It does nothing without the right to.
func setPolicy(thread int, policy uintptr, priority int32) {
	syscall.Syscall(syscall.SYS_SCHED_SETSCHEDULER, uintptr(thread), policy, uintptr(unsafe.Pointer(&priority)))
}
