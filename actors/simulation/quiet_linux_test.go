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
// (SCHED_IDLE). That thread has a goroutine preempted that it has seen running for 10 ms of real time,
// which includes the time that other programs have the processor: on a busy machine that is what makes
// two runs of a seed differ. The monitor is the first thread that a process starts.
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
	const schedIdle = 5
	var priority int32
	syscall.Syscall(syscall.SYS_SCHED_SETSCHEDULER, uintptr(slices.MinFunc(threads, cmp.Compare[int])), schedIdle, uintptr(unsafe.Pointer(&priority)))
}
