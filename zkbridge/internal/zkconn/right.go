package zkconn

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// ExplainRight returns err, with the right that a request for the node at path needs if err says
// that the right is missing and does not name it. CREATE and DELETE are rights on the node's
// directory. The error shows the path with the chroot, as ZooKeeper knows it.
func ExplainRight(c Client, err error, right, path string) error {
	if !errors.Is(err, zk.ErrNoAuth) || errors.As(err, new(*missingRight)) {
		return err
	}
	path = c.FullPath(path)
	if right == "CREATE" || right == "DELETE" {
		path, _ = zkpath.Split(path)
	}
	return &missingRight{err, right, path}
}

// missingRight is the error of a request that lacks a right.
type missingRight struct {
	err         error
	right, path string
}

func (e *missingRight) Error() string {
	return fmt.Sprintf("%v: %s is not granted on %s", e.err, e.right, e.path)
}

func (e *missingRight) Unwrap() error { return e.err }
