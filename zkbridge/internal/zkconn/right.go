package zkconn

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// ExplainRight returns err, with the right that a request for the node at path needs if err says that
// the right is missing. CREATE and DELETE are rights on the node's directory.
func ExplainRight(err error, right, path string) error {
	if !errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	if right == "CREATE" || right == "DELETE" {
		path, _ = SplitPath(path)
	}
	return fmt.Errorf("%w: %s is not granted on %s", err, right, path)
}
