package zkconn

import (
	"syscall"
	"time"
	"unsafe"
)

// systemSuspendedFor returns how long the machine was suspended since its start: how far
// CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC. It returns less by the time that passes between the
// two readings.
func systemSuspendedFor() time.Duration {
	const monotonic, boottime = 1, 7
	boot := readClock(boottime) // first: what comes between must not count as a suspend
	return max(0, boot-readClock(monotonic))
}

func readClock(id uintptr) time.Duration {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}
