package writer

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// Create is a messages.Create that is not answered.
type Create struct {
	reply.To
	msg      *messages.Create // nothing may write to it
	exists   bool             // the sender knows that the directory exists; otherwise it may be missing
	seen     bool             // the sender has seen the directory in this session
	aclBytes int32            // size of the node's ACL in a message

	group  *Group         // that this create is part of; own, but for the parts of an atomic create
	own    Group          // here, to allocate once
	self   [1]*Create     // its creates
	one    [1]*directory  // the memory of its directories, if there is one
	in     *directory     // its directory, if the group has directories
	lookup *zkconn.Lookup // of a part whose outcome is unknown, while other parts are looked for

	sentAt       time.Duration // when the newest transaction with it was sent, by Settings.Clock; 0 before
	node         string        // the node, if it is known to have been created and the rest is not
	step         uint32        // place among the creates of the last transaction
	read         int32         // index of the directory among the reads of that transaction, noReadNeeded or newDirectory
	unknownSince time.Duration // when the outcome of the last attempt became unknown, by the same; 0 if it is known
}

// NewCreate returns a create for the sender of msg. Its node gets an ACL.
func NewCreate(to reply.To, msg *messages.Create, acl []zk.ACL) *Create {
	c := &Create{To: to, msg: msg, exists: msg.GetDirectoryExists(), seen: msg.GetDirectorySeen(), aclBytes: int32(zkconn.ACLBytes(acl))}
	c.self[0], c.own.creates, c.group = c, c.self[:], &c.own
	c.own.directories = c.one[:0]
	return c
}

// Group returns the group that the create is part of.
func (c *Create) Group() *Group { return c.group }

// validate returns an error for a create that ZooKeeper would refuse below root. Its transaction may
// have to make the directory, which has the same ACL.
func (c *Create) validate(root zkconn.Chroot) error {
	if n := c.AtomicBytes(root); n > zkconn.MaxRequest {
		return fmt.Errorf("node and directory of %d bytes with their paths and ACLs: the limit is %d", n, zkconn.MaxRequest)
	}
	if err := zkpath.Check(c.msg.GetDirectory()); err != nil {
		return err
	}
	if r := c.msg.GetRequired(); r != "" && r != c.msg.GetDirectory() && !strings.HasPrefix(c.msg.GetDirectory(), strings.TrimSuffix(r, "/")+"/") {
		return fmt.Errorf("required directory %q: it must be %q or above it", r, c.msg.GetDirectory())
	}
	if c.msg.GetGuard() != "" {
		if err := zkpath.CheckName(c.msg.GetGuard()); err != nil {
			return err
		}
	}
	return zkpath.CheckName(c.msg.GetPrefix())
}

// Message returns the message. Nothing may write to it.
func (c *Create) Message() *messages.Create { return c.msg }

func (c *Create) path() string { return zkpath.Join(c.msg.GetDirectory(), c.msg.GetPrefix()) }

func (c *Create) bytes() int {
	return len(c.msg.GetDirectory()) + len(c.msg.GetPrefix()) + sequenceSize + len(c.msg.GetData()) + int(c.aclBytes)
}

func (c *Create) data() []byte {
	if data := c.msg.GetData(); data != nil {
		return data
	}
	return zkconn.NoData
}

// sequenceSize is the size of the sequence number that ZooKeeper appends to a name.
const sequenceSize = 10

// NodeRelease is a messages.ReleaseNode that is not answered. A delete may be sent again: that does
// no harm. A release fails when the epoch ends. The node then goes with the session, but a session
// that the bridge has given up may live on at the servers for longer than the bridge can know.
type NodeRelease struct {
	reply.To
	msg          *messages.ReleaseNode // nothing may write to it
	group        Group                 // that has only this release
	hangUps      zkconn.HangUps
	unknownSince time.Duration // when the outcome of the delete became unknown, by Settings.Clock; 0 if it is known
}

// NewRelease returns a release of a node for the sender of msg. A relaxed one waits for the next
// request while others are under way: the lock was handed on within this process.
func NewRelease(to reply.To, msg *messages.ReleaseNode) *NodeRelease {
	r := &NodeRelease{To: to, msg: msg}
	r.group.release = r
	return r
}

func (r *NodeRelease) path() string { return zkpath.Join(r.msg.GetDirectory(), r.msg.GetNode()) }

// Group is what ZooKeeper executes as a whole or not at all: a release, a create, or several
// creates, the parts of an atomic create.
type Group struct {
	release  *NodeRelease // nil if there are creates
	creates  []*Create
	arrival  uint64 // place of the creates among all of the epoch, from 1; 0 for a release
	failures int32  // transactions that failed because of other requests
	tries    int32  // how often the creates were sent again
	hangUps  zkconn.HangUps
	lookedUp int32 // how many parts with an unknown outcome were looked for

	directories []*directory // of its creates, if one of them may be missing; each once
}

// MaxParts is how many parts an atomic create has at most.
const MaxParts = maxOps / 2

// NewAtomicCreate returns the group of some creates that are executed as a whole.
func NewAtomicCreate(parts []*Create) *Group {
	if len(parts) == 1 {
		return parts[0].group
	}
	g := &Group{creates: parts}
	for _, c := range parts {
		c.group = g
	}
	return g
}

// Creates returns the creates of the group.
func (g *Group) Creates() []*Create { return g.creates }

// Validate returns an error for creates that ZooKeeper would refuse below root.
func (g *Group) Validate(root zkconn.Chroot) error {
	size := 0
	for _, c := range g.creates {
		if err := c.validate(root); err != nil {
			return err
		}
		size += c.AtomicBytes(root)
	}
	if len(g.creates) > MaxParts || size > zkconn.MaxRequest {
		return fmt.Errorf("%d nodes, %d bytes at once: the limits are %d and %d", len(g.creates), size, MaxParts, zkconn.MaxRequest)
	}
	return nil
}

// Fail implements reply.Failer, for creates that are not open.
func (g *Group) Fail(why messages.Reason, detail string) {
	for _, c := range g.creates {
		c.Fail(why, detail)
	}
}

// AtomicBytes returns the size of the create in an atomic create, with the operation that makes its
// directory.
func (c *Create) AtomicBytes(root zkconn.Chroot) int {
	return 2*zkconn.OpBytes + c.bytes() + len(c.msg.GetDirectory()) + int(c.aclBytes) + 2*len(root)
}

func (g *Group) bytes() (n int) {
	if r := g.release; r != nil {
		return zkconn.OpBytes + len(r.msg.GetDirectory()) + len(r.msg.GetNode())
	}
	for _, c := range g.creates {
		n += zkconn.OpBytes + c.bytes()
	}
	return n
}
