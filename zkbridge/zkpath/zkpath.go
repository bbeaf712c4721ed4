// Package zkpath splits, joins and checks the paths of ZooKeeper. A path that Check accepts is absolute,
// and "/" is the root.
package zkpath

import (
	"errors"
	"fmt"
	"strings"
)

// MaxLength bounds the bytes of a path.
const MaxLength = 512 << 10

// Join returns the path of a node in a directory.
func Join(directory, node string) string {
	if directory == "/" {
		return "/" + node
	}
	return directory + "/" + node
}

// Split is the reverse of Join. The directory of a text without a slash is the root.
func Split(path string) (directory, node string) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/", path[i+1:]
	}
	return path[:i], path[i+1:]
}

// Check returns an error for a path that ZooKeeper would refuse: a path must be absolute and
// without empty names, ".", "..", control characters and a slash at the end.
func Check(path string) error {
	if path == "/" {
		return nil
	}
	if len(path) > MaxLength {
		return fmt.Errorf("path of %d bytes: the limit is %d", len(path), MaxLength)
	}
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("path %q must begin with /", path)
	}
	if strings.HasSuffix(path, "/") {
		return fmt.Errorf("path %q must not end with a slash", path)
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if err := CheckName(name); err != nil {
			return fmt.Errorf("path %q: %w", path, err)
		}
	}
	return nil
}

// CheckName returns an error for a text that can neither be the name of a node nor begin one.
func CheckName(name string) error {
	if name == "" || name == "." || name == ".." {
		return fmt.Errorf("name %q is not allowed", name)
	}
	for _, r := range name {
		if r == '/' || forbidden(r) {
			return fmt.Errorf("character %q in name %q is not allowed", r, name)
		}
	}
	return nil
}

// CheckNode returns an error for a name that cannot be a node in a directory. It checks the path as
// a whole only for the text of the error.
func CheckNode(directory, name string) error {
	if len(directory)+len(name) < MaxLength && Check(directory) == nil && CheckName(name) == nil {
		return nil
	}
	return errors.Join(Check(directory), CheckName(name), Check(Join(directory, name)))
}

// forbidden reports whether r is a control character, of private use, or special. The last range
// has utf8.RuneError, which stands for invalid text.
func forbidden(r rune) bool {
	return r < ' ' || r >= 0x7f && (r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0)
}

// Children returns the path that stands for the children of a directory.
func Children(directory string) string { return Join(directory, "") }
