package zkconn

import (
	"errors"
	"fmt"
	"strings"
)

// JoinPath is the path of a node in a directory.
func JoinPath(directory, node string) string {
	if directory == "/" {
		return "/" + node
	}
	return directory + "/" + node
}

// SplitPath is the reverse of joinPath.
func SplitPath(path string) (directory, node string) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/", path[i+1:]
	}
	return path[:i], path[i+1:]
}

// CheckPath refuses a path that ZooKeeper would refuse: it must be absolute and without
// empty names, ".", "..", control characters and a slash at the end. The server's
// answer would name no operation of a transaction.
func CheckPath(path string) error {
	if path == "/" {
		return nil
	}
	if len(path) > MaxRequest {
		return fmt.Errorf("path of %d bytes: the limit is %d", len(path), MaxRequest)
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

// CheckName refuses what cannot be the name of a node, nor the beginning of one.
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

// CheckNode refuses what cannot be a node in a directory. It looks at the path as a
// whole only to tell what is wrong.
func CheckNode(directory, name string) error {
	if len(directory)+len(name) < MaxRequest && CheckPath(directory) == nil && CheckName(name) == nil {
		return nil
	}
	return errors.Join(CheckPath(directory), CheckName(name), CheckPath(JoinPath(directory, name)))
}

// forbidden are control characters, private use, and specials; the last range has
// utf8.RuneError in it, which stands for invalid text.
func forbidden(r rune) bool {
	return r < ' ' || r >= 0x7f && (r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0)
}

// ChildrenPath stands for the children of a directory.
func ChildrenPath(directory string) string { return JoinPath(directory, "") }
