package lockflags

import "syscall"

// isReadOnly reports whether a file is on a mount that is read-only.
func isReadOnly(file string) bool {
	const readOnly = 1 // ST_RDONLY of statfs
	var mount syscall.Statfs_t
	return syscall.Statfs(file, &mount) == nil && mount.Flags&readOnly != 0
}
