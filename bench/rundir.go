package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// sharedMemory is a file system in memory. A run uses it so that it does not measure a disk.
const sharedMemory = "/dev/shm"

// spaceNeeded is the space that the servers' logs may need. Containers often have less shared memory.
const spaceNeeded = 4 << 30

// makeRunDir creates the folder of a run, in memory if there is enough space. It locks a file in it as long as the process
// lives, so that the next run can find and remove the folders of killed runs.
func makeRunDir() (dir string, remove func(), err error) {
	parent := runDirParent()
	removeStale(parent)
	if dir, err = os.MkdirTemp(parent, runDirPattern); err != nil {
		return "", nil, err
	}
	lock, err := lockRunDir(dir, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return "", nil, err
	}
	return dir, func() {
		_ = os.RemoveAll(dir)
		lock.Close()
	}, nil
}

func runDirParent() string {
	var fs unix.Statfs_t
	if unix.Statfs(sharedMemory, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= spaceNeeded {
		return sharedMemory
	}
	return os.TempDir()
}

const runDirPattern = "actorlock-bench-*"

func removeStale(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, runDirPattern))
	for _, dir := range left {
		if lock, err := lockRunDir(dir, os.O_RDWR); err == nil {
			_ = os.RemoveAll(dir) // fails for the folder of another user
			lock.Close()
		}
	}
}

func lockRunDir(dir string, flag int) (*os.File, error) {
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
