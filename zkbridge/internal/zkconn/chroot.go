package zkconn

import "strings"

// Chroot is a path in front of all paths that go to ZooKeeper. No other path here shows it. It is
// empty or an absolute path other than "/".
type Chroot string

// prepend returns the path that ZooKeeper knows. It returns a path that is not absolute as it is;
// ZooKeeper refuses that.
func (r Chroot) prepend(path string) string {
	switch {
	case r == "" || !strings.HasPrefix(path, "/"):
		return path
	case path == "/":
		return string(r)
	}
	return string(r) + path
}

// strip is the reverse of prepend.
func (r Chroot) strip(path string) string {
	if path == string(r) && r != "" {
		return "/"
	}
	return strings.TrimPrefix(path, string(r))
}
