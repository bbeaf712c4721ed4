package zkconn

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// MakeDirectory creates the directory at path, and missing directories above it. It returns nil if
// there is one already.
func MakeDirectory(c Client, path string) error {
	err := makeNode(c, path)
	if IsMissing(err) {
		if err := makeParent(c, path); err != nil {
			return err
		}
		err = makeNode(c, path)
	}
	if err == nil || errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return MakeError(c, err, path)
}

// MakeError returns the error of a directory at path that ZooKeeper does not make because of err.
func MakeError(c Client, err error, path string) error {
	return fmt.Errorf("make %s: %w", describe(c, path), ExplainRight(c, err, "CREATE", path))
}

// describe returns the directory for an error, and says so if it is the chroot or above it.
func describe(c Client, path string) string {
	switch full := c.FullPath(path); {
	case path != "/" || full == "/":
		return "directory " + full
	case full == c.Chroot():
		return "chroot " + full
	default:
		return fmt.Sprintf("directory %s, above the chroot %s", full, c.Chroot())
	}
}

func makeParent(c Client, path string) error {
	parent, _ := zkpath.Split(path)
	if path == "/" {
		if c = c.Parent(); c == nil {
			return zk.ErrNoNode
		}
	}
	return MakeDirectory(c, parent)
}

// makeNode creates a container, which ZooKeeper deletes after its last lock has gone, or a
// persistent node if the server refuses containers.
func makeNode(c Client, path string) error {
	err := c.CreateContainer(path)
	if err == nil || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	if o, _ := Classify(err); o != Refused {
		return err
	}
	return c.Create(path, zk.FlagPersistent)
}
