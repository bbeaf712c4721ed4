package simulation

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"syscall"
	"unsafe"
)

// quieten has the operating system run Go's monitor thread only when there is nothing else to do
// (SCHED_IDLE), and the other threads before those of other programs (SCHED_RR), where the process has the
// right to. The monitor has a goroutine preempted that it has seen running for 10 ms of real time, which
// includes the time that other programs have the processor: on a busy machine that is what makes two runs
// of a seed differ. The monitor is the first thread that a process starts.
func quieten() {
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
			schedule(id, schedRoundRobin, 1)
		}
	}
	schedule(monitor, schedIdle, 0)
}

// schedule sets the policy of a thread. It does nothing without the right to.
func schedule(thread int, policy uintptr, priority int32) {
	syscall.Syscall(syscall.SYS_SCHED_SETSCHEDULER, uintptr(thread), policy, uintptr(unsafe.Pointer(&priority)))
}
