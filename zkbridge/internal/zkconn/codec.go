package zkconn

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// The messages of ZooKeeper's protocol that the client sends, and the answers to them.

const (
	opError           = -1
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opChildNames      = 8  // the answer has no stat
	opChildren        = 12 // the answer has the directory's stat
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15 // the answer has the node's stat
	opRemoveWatches   = 18 // since ZooKeeper 3.5
	opCreateContainer = 19
	opMultiRead       = 22 // since ZooKeeper 3.6
	opSetWatches      = 101
	opGetEphemerals   = 103 // since ZooKeeper 3.6
)

const (
	lengthSize = 4
	xidSize    = 4
	// headerSize is the size of a request's length, xid and type.
	headerSize = lengthSize + xidSize + 4
)

// newMessage begins a message. Conn.send fills in the length and the xid.
func newMessage(op int32, size int) []byte {
	b, _ := messagePool.Get().([]byte)
	b = slices.Grow(b[:0], headerSize+size)[:lengthSize+xidSize]
	return appendInt(b, op)
}

// messagePool holds messages that were sent, for re-use: more than 5 % of the CPU time of an
// acquire of a hot lock.
var messagePool sync.Pool

func recycle(request []byte) {
	if cap(request) <= maxBody {
		messagePool.Put(request) //lint:ignore SA6002 the slice's header, 24 bytes, costs less than a new message
	}
}

func encodeRead(op int32, path string, watch bool) []byte {
	return appendBool(appendText(newMessage(op, OpBytes+len(path)), path), watch)
}

// encodeRemoveWatch returns the message that takes back a watch on a node itself.
func encodeRemoveWatch(path string) []byte {
	const onData = 2
	return appendInt(appendText(newMessage(opRemoveWatches, OpBytes+len(path)), path), onData)
}

func encodeCreate(op int32, path string, data []byte, acl []zk.ACL, flags int32) []byte {
	return appendCreateRest(appendText(newMessage(op, 2*OpBytes+len(path)+len(data)), path), data, acl, flags)
}

func encodeDelete(path string) []byte {
	return appendInt(appendText(newMessage(opDelete, OpBytes+len(path)), path), AnyVersion)
}

// encodeMulti returns a transaction below root. Directories are persistent nodes without
// containers.
func encodeMulti(root Chroot, ops []Op, containers bool) []byte {
	b := newMessage(opMulti, OpBytes*(2+3*len(ops)))
	for _, op := range ops {
		if op.Kind == OpContainer {
			if op.Flags = zk.FlagContainer; !containers {
				op.Kind, op.Flags = OpCreate, zk.FlagPersistent
			}
		}
		b = appendOpHeader(b, op.Kind.code, false)
		b = appendPath(b, root, op.Path, op.Node)
		switch op.Kind {
		case OpCreate, OpContainer:
			b = appendCreateRest(b, op.Data, op.ACL, op.Flags)
		case OpSet:
			b = appendInt(appendData(b, op.Data), op.Version)
		default: // OpDelete, OpCheck
			b = appendInt(b, op.Version)
		}
	}
	return appendOpHeader(b, -1, true)
}

// appendOpHeader appends what comes before each operation and at the end: the operation's type,
// whether this is the end, and a place for an error.
func appendOpHeader(b []byte, op int32, end bool) []byte {
	return appendInt(appendBool(appendInt(b, op), end), -1)
}

// appendPath appends the path of a node in a directory, below root. Without a node it appends the
// path of the directory.
func appendPath(b []byte, root Chroot, directory, node string) []byte {
	if node == "" {
		return appendText(b, root.prepend(directory))
	}
	directory = strings.TrimSuffix(directory, "/")
	b = appendInt(b, int32(len(root)+len(directory)+1+len(node)))
	return append(append(append(append(b, root...), directory...), '/'), node...)
}

// appendCreateRest appends what follows the path of a create.
func appendCreateRest(b, data []byte, acl []zk.ACL, flags int32) []byte {
	b = appendData(b, data)
	b = appendInt(b, int32(len(acl)))
	for _, a := range acl {
		b = appendText(appendText(appendInt(b, a.Perms), a.Scheme), a.ID)
	}
	return appendInt(b, flags)
}

// maxWatches bounds the paths in one message, as other clients do.
const maxWatches = 128 << 10

// encodeSetWatches returns the messages that set watches again, on nodes and on the children of
// directories, below root. The server sends an event at once for each change since zxid.
func encodeSetWatches(zxid int64, root Chroot, nodes, directories []string) (requests [][]byte) {
	for len(nodes)+len(directories) > 0 {
		b := binary.BigEndian.AppendUint64(newMessage(opSetWatches, OpBytes), uint64(zxid))
		room := maxWatches
		b, nodes = appendSome(b, root, nodes, &room)
		b = appendInt(b, 0) // watches on nodes that are not there
		b, directories = appendSome(b, root, directories, &room)
		requests = append(requests, b)
	}
	return requests
}

// appendSome appends a list of as many paths as there is room for, and returns the rest.
func appendSome(b []byte, root Chroot, paths []string, room *int) (_ []byte, rest []string) {
	n := 0
	for n < len(paths) && *room > 0 {
		*room -= lengthSize + len(root) + len(paths[n])
		n++
	}
	b = appendInt(b, int32(n))
	for _, path := range paths[:n] {
		b = appendText(b, root.prepend(path))
	}
	return b, paths[n:]
}

func appendInt(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendText(b []byte, s string) []byte { return append(appendInt(b, int32(len(s))), s...) }

func appendData(b, data []byte) []byte {
	if data == nil { // the protocol distinguishes nil from no bytes
		return appendInt(b, -1)
	}
	return append(appendInt(b, int32(len(data))), data...)
}

// reader reads the fields of a message. Once a field is missing or makes no sense, it and all later
// ones are zero, and bad is set.
type reader struct {
	rest   []byte
	newest int64 // greatest zxid that the server can have; 0 if that is not known
	bad    bool
}

// zxidsAhead is how far the zxids of nodes may be ahead of the one in the head of an answer: a server
// may read a node while it notes the transaction that has made it, perhaps the first of a new leader.
const zxidsAhead = 1 << 33

var errGarbled = fmt.Errorf("%w: the answer makes no sense", zk.ErrAPIError)

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.bad, r.rest = true, nil
		return nil
	}
	field := r.rest[:n]
	r.rest = r.rest[n:]
	return field
}

func (r *reader) bool() bool {
	b := r.take(1)
	return b != nil && b[0] != 0
}

func (r *reader) int() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) long() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) text() string { return string(r.take(int(r.int()))) }

// data returns a copy, or nil for the length -1.
func (r *reader) data() []byte {
	n := int(r.int())
	if n == -1 {
		return nil
	}
	return append(NoData, r.take(n)...)
}

func (r *reader) texts() []string {
	n := int(r.int())
	if n < 0 || n > len(r.rest)/lengthSize {
		r.bad = true
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, r.text())
	}
	return list
}

func (r *reader) stat() (s zk.Stat) {
	s.Czxid, s.Mzxid, s.Ctime, s.Mtime = r.long(), r.long(), r.long(), r.long()
	s.Version, s.Cversion, s.Aversion = r.int(), r.int(), r.int()
	s.EphemeralOwner = r.long()
	s.DataLength, s.NumChildren = r.int(), r.int()
	s.Pzxid = r.long()
	if newest := max(s.Czxid, s.Mzxid, s.Pzxid); r.newest > 0 && newest > r.newest && newest-r.newest > zxidsAhead {
		r.bad = true // as of a stat that begins elsewhere; a lock would not believe in later nodes
	}
	return s
}

// made returns what an answer says of the node that op has made below root: its name if op has a
// Node, and its path otherwise. Another node than that is bad: it would be taken for deleted once it is not
// found, and the one that was made would stay.
func (r *reader) made(root Chroot, op *Op) string {
	path := r.take(int(r.int()))
	rest := path
	cut := func(prefix string) bool {
		ok := len(rest) >= len(prefix) && string(rest[:len(prefix)]) == prefix
		if ok {
			rest = rest[len(prefix):]
		}
		return ok
	}
	ok := cut(string(root)) && cut(strings.TrimSuffix(op.Path, "/")) && (op.Node == "" || cut("/") && cut(op.Node))
	if !ok || op.Flags&zk.FlagSequence == 0 && len(rest) > 0 {
		r.bad = true
	}
	if op.Node != "" {
		return string(path[bytes.LastIndexByte(path, '/')+1:])
	}
	return root.strip(string(path))
}

// results returns the results of a transaction, below root, and the first error among them. An
// operation with a Node has the name of the node that was made as its String; others have the path.
func (r *reader) results(root Chroot, ops []Op) (all []zk.MultiResponse, failure error) {
	all = make([]zk.MultiResponse, 0, len(ops))
	for {
		op, last, _ := r.int(), r.bool(), r.int()
		if !last && len(all) == len(ops) {
			r.bad = true
		}
		if last || r.bad {
			return all, failure
		}
		var result zk.MultiResponse
		if op == opCreate || op == opCreate2 {
			result.String = r.made(root, &ops[len(all)])
		}
		switch op {
		case opCreate2, opSetData: // create2 answers a container
			stat := r.stat()
			result.Stat = &stat
		case opCreate, opCheck, opDelete:
		case opError:
			result.Error = errorOf(r.int())
			if failure == nil {
				failure = result.Error
			}
		default:
			r.bad = true
		}
		all = append(all, result)
	}
}

// ACLBytes returns the size of an ACL in a message.
func ACLBytes(acl []zk.ACL) (n int) {
	for _, a := range acl {
		n += 3*lengthSize + len(a.Scheme) + len(a.ID)
	}
	return n
}

// MaxRequest bounds a node's path, data and ACL. A message of about a megabyte makes a
// server drop the connection.
const MaxRequest = zkpath.MaxLength

// OpBytes is the size of an operation in a message, without paths and data.
const OpBytes = 64
