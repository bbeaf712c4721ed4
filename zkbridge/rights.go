package zkbridge

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// requiredRight is the right on a node that a request takes.
type requiredRight struct{ right, path string }

// needsOn is what a write to the node at path takes of its directory.
func (n requiredRight) of(path string) requiredRight {
	directory, _ := splitPath(path)
	return requiredRight{n.right, directory}
}

// explain says which right is missing, if that is what err is about.
func (n requiredRight) explain(err error) error {
	if errors.Is(err, zk.ErrNoAuth) {
		return fmt.Errorf("%w: %s is not granted on %s", err, n.right, n.path)
	}
	return err
}
