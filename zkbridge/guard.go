package zkbridge

import (
	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// Result is what became of one operation of a transaction: the path of a node that
// was created in String, the Stat of one whose data was set.
type Result = zk.MultiResponse

// ACL gives somebody rights on a node: zk.PermRead and so on, to an identity of a scheme.
type ACL = zk.ACL

// CheckNode is the operation that lets a transaction fail unless the node exists.
func CheckNode(path string) any {
	return &zk.CheckVersionRequest{Path: path, Version: zkconn.AnyVersion}
}
