//go:build !linux

package lockflags

// isReadOnly returns false, because Kubernetes mounts secrets on Linux.
func isReadOnly(string) bool { return false }
