//go:build unix

package remote

import "syscall"

// openFiles returns how many files the process may have open.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return unlimitedFiles
	}
	return min(uint64(limit.Cur), unlimitedFiles)
}
