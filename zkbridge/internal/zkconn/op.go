package zkconn

import "github.com/go-zookeeper/zk"

// Op is an operation of a transaction.
type Op struct {
	Kind    *OpKind
	Path    string   // of the node, or with Node of its directory
	Node    string   // the name in that directory, so that no path need be made; empty for none
	Data    []byte   // of OpCreate, OpContainer and OpSet
	ACL     []zk.ACL // of OpCreate and OpContainer
	Flags   int32    // of OpCreate, go-zookeeper's
	Version int32    // of the others
}

// OpKind is a kind of operation.
type OpKind struct {
	Name  string
	Right string // that the operation needs; see ExplainRight
	code  int32
}

// The kinds of operations.
var (
	OpCreate    = &OpKind{"create", "CREATE", opCreate}
	OpContainer = &OpKind{"create", "CREATE", opCreateContainer} // a persistent node where servers do not know containers
	OpDelete    = &OpKind{"delete", "DELETE", opDelete}
	OpSet       = &OpKind{"set", "WRITE", opSetData}
	OpCheck     = &OpKind{"check", "READ", opCheck}
)

// AnyVersion makes an operation unconditional.
const AnyVersion = -1

// CheckExists returns the operation that lets a transaction fail unless the node exists.
func CheckExists(path string) Op { return Op{Kind: OpCheck, Path: path, Version: AnyVersion} }

// maxShared bounds the bytes of a message with several operations. One is as large as its path.
const maxShared = 64 << 10

// Sharing returns how many of n operations share the next message: limit at most. bytes returns the size of each.
func Sharing(n, limit int, bytes func(i int) int) int {
	n = min(n, limit)
	size := 0
	for i := range n {
		if size += bytes(i); size > maxShared && i > 0 {
			return i
		}
	}
	return n
}

// Bytes returns the size of the operation in a message.
func (o Op) Bytes() int { return OpBytes + len(o.Path) + len(o.Node) + len(o.Data) + ACLBytes(o.ACL) }
