package zkbridge

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// createRequest is a Create that is not answered.
type createRequest struct {
	replyTo
	directory string
	prefix    string
	data      []byte
	beside    string // the node without which this one is not made
	withNames bool   // the names in the directory are asked for
	after     string // the node after whose deletion by the same transaction no read is needed
	exists    bool   // the directory does; else it may be missing
	aclBytes  int    // what the node's ACL takes in a message

	atomic *atomicCreate // with which it is done; nil for none
	lookup *lookup       // of one in doubt, while the others of its joint are looked for

	op           zk.CreateRequest // of its last transaction
	node         string           // known to have been created, the rest is not known yet
	step         uint32           // place in its last transaction, among all creates of that
	read         int32            // of its directory among the looks of that transaction, or inDirectoryOfAfter
	arrival      uint64           // its place among all creates of the epoch, from 1
	failures     int              // multis that failed because of others
	tries        int
	unknownSince time.Time // when the last attempt came to be in doubt
}

func (s *settings) newCreate(from replyTo, msg *messages.Create) *createRequest {
	c := &createRequest{replyTo: from, aclBytes: zkconn.ACLBytes(s.ACL), directory: msg.GetDirectory(),
		prefix: msg.GetPrefix(), data: msg.GetData(), beside: msg.GetBeside(), withNames: msg.GetLook(), after: msg.GetAfter(), exists: msg.GetDirectoryExists()}
	if c.data == nil {
		c.data = zkconn.NoData
	}
	return c
}

// right is the right that the create takes.
func (c *createRequest) right() zkconn.Right { return zkconn.RightOn("CREATE", c.directory) }

func (c *createRequest) path() string { return zkconn.JoinPath(c.directory, c.prefix) }

// createOp is the operation in a transaction that Create is alone.
func (c *createRequest) createOp(acl []zk.ACL) *zk.CreateRequest {
	c.op = zk.CreateRequest{Path: c.path(), Data: c.data, Acl: acl, Flags: zk.FlagEphemeralSequential}
	return &c.op
}

func (c *createRequest) bytes() int {
	return len(c.directory) + len(c.prefix) + zkSeqSize + len(c.data) + c.aclBytes
}

// validate is for a create below root. The directory's path goes out twice: to create in
// it, and to read it.
func (c *createRequest) validate(root zkconn.Chroot) error {
	if n := c.bytes() + len(c.directory) + 2*len(root); n > zkconn.MaxRequest {
		return fmt.Errorf("node of %d bytes with its path and its ACL: the limit is %d", n, zkconn.MaxRequest)
	}
	if err := zkconn.CheckPath(c.directory); err != nil {
		return err
	}
	if c.beside != "" {
		if err := zkconn.CheckName(c.beside); err != nil {
			return err
		}
	}
	return zkconn.CheckName(c.prefix)
}

// createBeside creates a node that needs another one of its directory.
func (ep *epoch) createBeside(c *createRequest) {
	c.step = 0
	ep.singles.addBlocking(func() func() {
		err := ep.client.CreateBeside(c.path(), c.data, zkconn.JoinPath(c.directory, c.beside))
		if err != nil {
			return func() { ep.onCreatedBeside(c, err) }
		}
		found, err := lookUpNode(ep.client, c.directory, c.prefix)
		return func() {
			c.node = c.prefix
			ep.finishCreate(c, found, err)
		}
	})
}

func (ep *epoch) onCreatedBeside(c *createRequest, err error) {
	switch what, why := zkconn.Classify(err); {
	case zkconn.IsMissing(err):
		ep.fail(c, messages.Reason_NOT_HELD, "create %s: %s is not there any more", c.path(), c.beside)
	case errors.Is(err, zk.ErrNodeExists): // it has no number that could be used up
		ep.failCreate(c, messages.Reason_INVALID, err)
	case what == zkconn.Refused:
		ep.failCreate(c, why, c.right().Explain(err))
	case what == zkconn.NotSent:
		ep.retryLater(func() { ep.submit(c) })
	default:
		ep.lookUpLater(c)
	}
}

func (ep *epoch) failCreate(c *createRequest, why messages.Reason, err error) {
	ep.fail(c, why, "create %s: %v", c.path(), err)
}

// lookup is a node as read after its creation.
type lookup struct {
	node    string
	stat    zk.Stat
	exists  bool
	listing zkconn.Listing
}

// lookUpNode reads both at once, in one flight.
func lookUpNode(c zkconn.Client, directory, node string) (lookup, error) {
	s := lookup{node: node}
	var g errgroup.Group
	g.Go(func() (err error) {
		s.stat, s.exists, err = c.Exists(zkconn.JoinPath(directory, node))
		return err
	})
	var err error
	s.listing, err = c.Children(directory)
	statErr := g.Wait() // before s is returned
	return s, errors.Join(statErr, err)
}

// finishCreate ends a create whose node was seen; or it was not, and somebody must have
// deleted it.
func (ep *epoch) finishCreate(c *createRequest, s lookup, err error) {
	switch {
	case err != nil && isPermanent(err):
		ep.rollBackFor(c, err)
	case err != nil:
		ep.lookUpLater(c)
	case !s.exists:
		ep.fail(c, messages.Reason_NODE_DELETED, "%s was deleted right after its creation", zkconn.JoinPath(c.directory, c.node))
	default:
		ep.answerCreated(c, &messages.Created{Id: c.id, Epoch: c.epoch, Node: s.node,
			Czxid: s.stat.Czxid, Step: c.step, Children: s.listing.Children, DirectoryCzxid: s.listing.Czxid})
	}
}

// lookUpLater keeps a create that may have been executed until that is known.
func (ep *epoch) lookUpLater(c *createRequest) {
	ep.unknownCreates = append(ep.unknownCreates, c)
	ep.armRetry()
}

// lookUpUnknown finds out about all uncertain creates, directory by directory.
func (ep *epoch) lookUpUnknown() {
	if len(ep.unknownCreates) == 0 {
		return
	}
	byDir := map[string][]*createRequest{}
	for _, c := range ep.unknownCreates {
		byDir[c.directory] = append(byDir[c.directory], c)
	}
	ep.unknownCreates = nil
	for _, directory := range slices.Sorted(maps.Keys(byDir)) {
		creates := byDir[directory]
		ep.singles.addBlocking(func() func() {
			sightings, err := lookUpCreates(ep.client, directory, creates)
			return func() { ep.onLookups(creates, sightings, err) }
		})
	}
}

func (ep *epoch) onLookups(creates []*createRequest, sightings []lookup, err error) {
	if err != nil {
		ep.onLookupFailure(creates, err)
		return
	}
	for i, c := range creates {
		if _, open := ep.open[c]; !open {
			continue // answered with another create of its transaction
		}
		if sightings[i].exists && sightings[i].stat.EphemeralOwner != ep.conn.ID() {
			sightings[i] = lookup{} // of the same name, but not ours
		}
		c.unknownSince = time.Time{}
		switch {
		case c.atomic != nil && c.node == "":
			ep.onAtomicLookup(c, &sightings[i])
		case sightings[i].node != "":
			c.node = sightings[i].node
			fallthrough
		case c.node != "":
			ep.finishCreate(c, sightings[i], nil)
		default:
			ep.resubmit(c, errNotExecuted)
		}
	}
}

var errNotExecuted = fmt.Errorf("%w: it is repeatedly lost", zk.ErrAPIError)

// lookUpCreates looks for the nodes of creates in their directory, behind a barrier: one
// may still be on its way to this server.
func lookUpCreates(c zkconn.Client, directory string, creates []*createRequest) ([]lookup, error) {
	found := make([]lookup, len(creates))
	err := barrier(c, directory)
	if zkconn.IsMissing(err) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	inside, err := c.Children(directory)
	if zkconn.IsMissing(err) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	return found, lookUpNodes(c, directory, creates, inside, found)
}

// lookUpNodes fills in found.
func lookUpNodes(c zkconn.Client, directory string, creates []*createRequest, inside zkconn.Listing, found []lookup) error {
	var g errgroup.Group
	g.SetLimit(8)
	for i, cr := range creates {
		node := cr.nodeIn(inside.Children)
		if node == "" {
			continue
		}
		g.Go(func() (err error) {
			s := &found[i]
			s.node, s.listing = node, inside
			s.stat, s.exists, err = c.Exists(zkconn.JoinPath(directory, node))
			return err
		})
	}
	return g.Wait()
}

func (c *createRequest) nodeIn(children []string) string {
	if c.beside == "" {
		return findSequential(children, c.prefix)
	}
	if slices.Contains(children, c.prefix) {
		return c.prefix
	}
	return ""
}

// findSequential is the child whose name is prefix and a sequence number.
func findSequential(children []string, prefix string) string {
	for _, name := range children {
		if rest, ok := strings.CutPrefix(name, prefix); ok && isSequenceNumber(rest) {
			return name
		}
	}
	return ""
}

// isSequenceNumber tells what ZooKeeper appends to a name: ten digits, or a minus sign and
// nine or ten. The name of another prefix that begins alike has more.
func isSequenceNumber(s string) bool {
	_, err := strconv.ParseInt(s, 10, 32)
	digits := strings.TrimPrefix(s, "-")
	return err == nil && len(s) >= zkSeqSize && len(digits) <= zkSeqSize && digits[0] != '+'
}
