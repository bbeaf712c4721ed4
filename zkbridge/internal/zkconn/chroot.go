package zkconn

import (
	"fmt"
	"strings"
)

// Chroot is a path that stands before all paths that go to ZooKeeper, and that
// nobody here sees. It is empty or an absolute path, other than "/".
type Chroot string

// Check refuses what is no path, and what looks like a server behind it.
func (r Chroot) Check(list string) error {
	switch {
	case r == "":
		return nil
	case strings.Contains(string(r), ","):
		return fmt.Errorf("%q: the chroot path stands behind the last server, once, and no comma is allowed in it", list)
	}
	if err := CheckPath(string(r)); err != nil {
		return fmt.Errorf("%q: chroot: %w", list, err)
	}
	return nil
}

// prepend gives the path that ZooKeeper knows. What is no absolute path stays as it
// is, and is refused.
func (r Chroot) prepend(path string) string {
	switch {
	case r == "" || !strings.HasPrefix(path, "/"):
		return path
	case path == "/":
		return string(r)
	}
	return string(r) + path
}

func (r Chroot) prependAll(paths []string) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = r.prepend(path)
	}
	return all
}

// strip is the reverse of with.
func (r Chroot) strip(path string) string {
	if path == string(r) && r != "" {
		return "/"
	}
	return strings.TrimPrefix(path, string(r))
}
