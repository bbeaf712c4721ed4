package zkconn

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// Right is a right on a node that a request needs.
type Right struct{ right, path string }

// RightOn returns the right on the node at path.
func RightOn(right, path string) Right { return Right{right, path} }

// RightOnParent returns the right on the directory of the node at path.
func RightOnParent(right, path string) Right {
	directory, _ := SplitPath(path)
	return Right{right, directory}
}

// Explain returns err, with the right and the path if err says that a right is missing.
func (n Right) Explain(err error) error {
	if errors.Is(err, zk.ErrNoAuth) {
		return fmt.Errorf("%w: %s is not granted on %s", err, n.right, n.path)
	}
	return err
}
