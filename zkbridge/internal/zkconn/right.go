package zkconn

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// Right is the right on a node that a request takes.
type Right struct{ right, path string }

// RightOn returns a right on the node at path.
func RightOn(right, path string) Right { return Right{right, path} }

// RightOnParent returns a right on the directory of the node at path.
func RightOnParent(right, path string) Right {
	directory, _ := SplitPath(path)
	return Right{right, directory}
}

// Explain says which right is missing, if that is what err is about.
func (n Right) Explain(err error) error {
	if errors.Is(err, zk.ErrNoAuth) {
		return fmt.Errorf("%w: %s is not granted on %s", err, n.right, n.path)
	}
	return err
}
