package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// sharedMemory is a file system in memory, so that no disk is measured.
const sharedMemory = "/dev/shm"

// roomNeeded is what the servers' logs may take; containers often have less in memory.
const roomNeeded = 4 << 30

// openPlace makes the folder for everything that a run needs, in memory if there is room. The lock in it ends with
// this process, so that what killed runs have left behind is found and removed by the next.
func openPlace() (dir string, remove func(), err error) {
	parent := placeParent()
	sweep(parent)
	if dir, err = os.MkdirTemp(parent, placeName); err != nil {
		return "", nil, err
	}
	lock, err := lockPlace(dir, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return "", nil, err
	}
	return dir, func() {
		_ = os.RemoveAll(dir)
		lock.Close()
	}, nil
}

func placeParent() string {
	var fs unix.Statfs_t
	if unix.Statfs(sharedMemory, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= roomNeeded {
		return sharedMemory
	}
	return os.TempDir()
}

const placeName = "actorlock-bench-*"

func sweep(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, placeName))
	for _, dir := range left {
		if lock, err := lockPlace(dir, os.O_RDWR); err == nil {
			_ = os.RemoveAll(dir) // somebody else's cannot be removed
			lock.Close()
		}
	}
}

func lockPlace(dir string, flag int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), flag, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
