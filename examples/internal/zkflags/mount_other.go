//go:build !linux

package zkflags

// isReadOnly returns false, because Kubernetes mounts secrets on Linux.
func isReadOnly(string) bool { return false }
