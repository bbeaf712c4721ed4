package zkbridge

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// opDescription describes an operation of a transaction.
type opDescription struct{ kind, path, right string }

func describe(op any) opDescription {
	switch op := op.(type) {
	case *zk.CreateRequest:
		return opDescription{"create", op.Path, "CREATE"}
	case *zk.DeleteRequest:
		return opDescription{"delete", op.Path, "DELETE"}
	case *zk.SetDataRequest:
		return opDescription{"set", op.Path, "WRITE"}
	case *zk.CheckVersionRequest:
		return opDescription{"check", op.Path, "READ"}
	}
	return opDescription{}
}

// copyOps checks a user's operations and returns copies, which share no memory with them: the user may
// change them before the bridge has sent them.
func copyOps(ops []any, acl []zk.ACL, root zkconn.Chroot) ([]any, error) {
	if len(ops) == 0 {
		return nil, errors.New("a transaction needs an operation")
	}
	copies, size := make([]any, len(ops)), 0
	for i, op := range ops {
		c, n := copyOp(op, acl)
		if c == nil {
			return nil, fmt.Errorf("operation %d is a %T, nil perhaps: it must be a *zk.CreateRequest, "+
				"*zk.DeleteRequest, *zk.SetDataRequest or *zk.CheckVersionRequest", i, op)
		}
		if err := checkOp(c); err != nil {
			return nil, fmt.Errorf("operation %d, %s: %w", i, describe(c).kind, err)
		}
		copies[i] = c
		size += n + len(root) // the root goes in front of each path
	}
	if size > zkconn.MaxRequest {
		return nil, fmt.Errorf("transaction of %d bytes: the limit is %d", size, zkconn.MaxRequest)
	}
	return copies, nil
}

// copyOp returns a copy and its size in a message, or nil for a value that is no operation.
func copyOp(op any, acl []zk.ACL) (c any, size int) {
	if v := reflect.ValueOf(op); v.Kind() != reflect.Pointer || v.IsNil() {
		return nil, 0
	}
	switch op := op.(type) {
	case *zk.CreateRequest:
		cr := *op
		cr.Data, cr.Acl = bytes.Clone(op.Data), slices.Clone(op.Acl)
		if cr.Acl == nil {
			cr.Acl = acl
		}
		return &cr, zkconn.OpBytes + len(cr.Path) + len(cr.Data) + zkconn.ACLBytes(cr.Acl)
	case *zk.SetDataRequest:
		return &zk.SetDataRequest{Path: op.Path, Data: bytes.Clone(op.Data), Version: op.Version},
			zkconn.OpBytes + len(op.Path) + len(op.Data)
	case *zk.DeleteRequest:
		d := *op
		return &d, zkconn.OpBytes + len(d.Path)
	case *zk.CheckVersionRequest:
		d := *op
		return &d, zkconn.OpBytes + len(d.Path)
	}
	return nil, 0
}

// checkOp returns an error for an operation that a server would refuse without naming it, and for one
// that a transaction cannot have.
func checkOp(op any) error {
	d := describe(op)
	path := d.path
	if c, ok := op.(*zk.CreateRequest); ok {
		if c.Flags < 0 || c.Flags > zk.FlagEphemeralSequential {
			return fmt.Errorf("%s: flags %d: only ephemeral and sequential nodes can be made in a transaction, "+
				"no containers and none with a TTL", path, c.Flags)
		}
		if c.Flags&zk.FlagSequence != 0 {
			path += "0" // the sequence number may be the whole name
		}
	}
	if path == "/" && (d.kind == "create" || d.kind == "delete") {
		return errors.New("the path is /: the root can be neither made nor deleted")
	}
	return zkconn.CheckPath(path)
}
