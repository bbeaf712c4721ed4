package zkbridge

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// opsOf returns a user's operations, which share no memory with the result: the user may change
// them before the bridge has sent them.
func opsOf(ops []any) ([]zkconn.Op, error) {
	all := make([]zkconn.Op, len(ops))
	for i, op := range ops {
		if all[i] = opOf(op); all[i].Kind == nil {
			return nil, fmt.Errorf("operation %d is a %T, nil perhaps: it must be a *zk.CreateRequest, "+
				"*zk.DeleteRequest, *zk.SetDataRequest or *zk.CheckVersionRequest", i, op)
		}
	}
	return all, nil
}

// opOf returns an Op without a kind for a value that is no operation.
func opOf(op any) (none zkconn.Op) {
	if v := reflect.ValueOf(op); v.Kind() != reflect.Pointer || v.IsNil() {
		return none
	}
	switch op := op.(type) {
	case *zk.CreateRequest:
		return zkconn.Op{Kind: zkconn.OpCreate, Path: op.Path, Data: bytes.Clone(op.Data), ACL: slices.Clone(op.Acl), Flags: op.Flags}
	case *zk.DeleteRequest:
		return zkconn.Op{Kind: zkconn.OpDelete, Path: op.Path, Version: op.Version}
	case *zk.SetDataRequest:
		return zkconn.Op{Kind: zkconn.OpSet, Path: op.Path, Data: bytes.Clone(op.Data), Version: op.Version}
	case *zk.CheckVersionRequest:
		return zkconn.Op{Kind: zkconn.OpCheck, Path: op.Path, Version: op.Version}
	}
	return none
}

var opKinds = map[messages.Op_Kind]*zkconn.OpKind{
	messages.Op_CREATE: zkconn.OpCreate,
	messages.Op_DELETE: zkconn.OpDelete,
	messages.Op_SET:    zkconn.OpSet,
	messages.Op_CHECK:  zkconn.OpCheck,
}

// opsOfMessage returns the operations of a Transact.
func opsOfMessage(ops []*messages.Op) ([]zkconn.Op, error) {
	all := make([]zkconn.Op, len(ops))
	for i, op := range ops {
		kind, known := opKinds[op.GetKind()]
		if !known {
			return nil, fmt.Errorf("operation %d: kind %d: it must be CHECK, CREATE, SET or DELETE", i, op.GetKind())
		}
		all[i] = zkconn.Op{Kind: kind, Path: op.GetPath(), Data: append(zkconn.NoData, op.GetData()...), Version: zkconn.AnyVersion}
		if op.GetEphemeral() {
			all[i].Flags = zk.FlagEphemeral
		}
	}
	return all, nil
}

// checkTransaction returns an error for operations that cannot be sent, or a directory of their nodes
// that cannot be made. Creates without an ACL get the ACL of cfg.
func checkTransaction(ops []zkconn.Op, within string, cfg *settings) error {
	if within != "" {
		if err := zkpath.Check(within); err != nil {
			return err
		}
	}
	if len(ops) == 0 {
		return errors.New("a transaction needs an operation")
	}
	size := 0
	for i := range ops {
		op := &ops[i]
		if err := checkOp(op); err != nil {
			return fmt.Errorf("operation %d, %s: %w", i, op.Kind.Name, err)
		}
		if op.Kind == zkconn.OpCreate && op.ACL == nil {
			op.ACL = cfg.ACL
		}
		size += op.Bytes() + len(cfg.Root) // the root goes in front of each path
	}
	if size > zkconn.MaxRequest {
		return fmt.Errorf("transaction of %d bytes: the limit is %d", size, zkconn.MaxRequest)
	}
	return nil
}

// checkOp returns an error for an operation that a server would refuse without naming it, and for
// one that a transaction cannot have.
func checkOp(op *zkconn.Op) error {
	path := op.Path
	if op.Kind == zkconn.OpCreate {
		if op.Flags < 0 || op.Flags > zk.FlagEphemeralSequential {
			return fmt.Errorf("%s: flags %d: only ephemeral and sequential nodes can be made in a transaction, "+
				"no containers and none with a TTL", path, op.Flags)
		}
		if op.Flags&zk.FlagSequence != 0 {
			path += "0" // the sequence number may be the whole name
		}
	}
	if path == "/" && (op.Kind == zkconn.OpCreate || op.Kind == zkconn.OpDelete) {
		return errors.New("the path is /: the root can be neither made nor deleted")
	}
	return zkpath.Check(path)
}
