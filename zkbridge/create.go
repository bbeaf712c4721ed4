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
)

// create is a Create that is not answered.
type create struct {
	asker
	directory string
	prefix    string
	data      []byte
	beside    string // the node without which this one is not made
	look      bool   // the names in the directory are asked for
	after     string // the node after whose deletion by the same transaction no read is needed
	exists    bool   // the directory does; else it may be missing
	aclBytes  int    // what the node's ACL takes in a message

	joint    *joint    // with which it is done; nil for none
	sighting *sighting // of one in doubt, while the others of its joint are looked for

	op       zk.CreateRequest // of its last transaction
	node     string           // known to have been created, the rest is not known yet
	step     uint32           // place in its last transaction, among all creates of that
	slot     int32            // of its directory among the looks of that transaction, or inDirectoryOfAfter
	arrival  uint64           // its place among all creates of the epoch, from 1
	failures int              // multis that failed because of others
	tries    int
	since    time.Time // when the last attempt came to be in doubt
}

func (s *settings) newCreate(from asker, msg *messages.Create) *create {
	c := &create{asker: from, aclBytes: s.aclBytes(), directory: msg.GetDirectory(),
		prefix: msg.GetPrefix(), data: msg.GetData(), beside: msg.GetBeside(), look: msg.GetLook(), after: msg.GetAfter(), exists: msg.GetDirectoryExists()}
	if c.data == nil {
		c.data = noData
	}
	return c
}

// maxRequest bounds a node's path, data and ACL. A message of about a megabyte makes a
// server drop the connection.
const maxRequest = 512 << 10

// needs is the right that the create takes.
func (c *create) needs() need { return need{"CREATE", c.directory} }

func (c *create) path() string { return joinPath(c.directory, c.prefix) }

// createOp is the operation in a transaction that Create is alone.
func (c *create) createOp(acl []zk.ACL) *zk.CreateRequest {
	c.op = zk.CreateRequest{Path: c.path(), Data: c.data, Acl: acl, Flags: zk.FlagEphemeralSequential}
	return &c.op
}

func (c *create) bytes() int {
	return len(c.directory) + len(c.prefix) + zkSeqSize + len(c.data) + c.aclBytes
}

// check is for a create below root. The directory's path goes out twice: to create in
// it, and to read it.
func (c *create) check(root chroot) error {
	if n := c.bytes() + len(c.directory) + 2*len(root); n > maxRequest {
		return fmt.Errorf("node of %d bytes with its path and its ACL: the limit is %d", n, maxRequest)
	}
	if err := CheckPath(c.directory); err != nil {
		return err
	}
	if c.beside != "" {
		if err := checkName(c.beside); err != nil {
			return err
		}
	}
	return checkName(c.prefix)
}

// createBeside creates a node that needs another one of its directory.
func (ep *epoch) createBeside(c *create) {
	c.step = 0
	ep.solos.do(func() func() {
		err := ep.client.CreateBeside(c.path(), c.data, joinPath(c.directory, c.beside))
		if err != nil {
			return func() { ep.createdBeside(c, err) }
		}
		found, err := stat(ep.client, c.directory, c.prefix)
		return func() {
			c.node = c.prefix
			ep.found(c, found, err)
		}
	})
}

func (ep *epoch) createdBeside(c *create, err error) {
	switch what, why := judge(err); {
	case isMissing(err):
		ep.fail(c, messages.Reason_NOT_HELD, "create %s: %s is not there any more", c.path(), c.beside)
	case errors.Is(err, zk.ErrNodeExists): // it has no number that could be used up
		ep.failCreate(c, messages.Reason_INVALID, err)
	case what == refused:
		ep.failCreate(c, why, c.needs().explain(err))
	case what == notSent:
		ep.again(func() { ep.place(c) })
	default:
		ep.doubt(c)
	}
}

func (ep *epoch) failCreate(c *create, why messages.Reason, err error) {
	ep.fail(c, why, "create %s: %v", c.path(), err)
}

// sighting is a node as read after its creation.
type sighting struct {
	node    string
	stat    zk.Stat
	exists  bool
	listing listing
}

// stat reads both at once, in one flight.
func stat(c client, directory, node string) (sighting, error) {
	s := sighting{node: node}
	var g errgroup.Group
	g.Go(func() (err error) {
		s.stat, s.exists, err = c.Exists(joinPath(directory, node))
		return err
	})
	var err error
	s.listing, err = c.Children(directory)
	statErr := g.Wait() // before s is returned
	return s, errors.Join(statErr, err)
}

// found ends a create whose node was seen; or it was not, and somebody must have
// deleted it.
func (ep *epoch) found(c *create, s sighting, err error) {
	switch {
	case err != nil && hopeless(err):
		ep.undo(c, err)
	case err != nil:
		ep.doubt(c)
	case !s.exists:
		ep.fail(c, messages.Reason_NODE_DELETED, "%s was deleted right after its creation", joinPath(c.directory, c.node))
	default:
		ep.answerCreated(c, &messages.Created{Id: c.id, Epoch: c.epoch, Node: s.node,
			Czxid: s.stat.Czxid, Step: c.step, Children: s.listing.children, DirectoryCzxid: s.listing.czxid})
	}
}

// doubt keeps a create that may have been executed until that is known.
func (ep *epoch) doubt(c *create) {
	ep.uncertain = append(ep.uncertain, c)
	ep.armRetry()
}

// resolve finds out about all uncertain creates, directory by directory.
func (ep *epoch) resolve() {
	if len(ep.uncertain) == 0 {
		return
	}
	byDir := map[string][]*create{}
	for _, c := range ep.uncertain {
		byDir[c.directory] = append(byDir[c.directory], c)
	}
	ep.uncertain = nil
	for _, directory := range slices.Sorted(maps.Keys(byDir)) {
		creates := byDir[directory]
		ep.solos.do(func() func() {
			sightings, err := search(ep.client, directory, creates)
			return func() { ep.resolved(creates, sightings, err) }
		})
	}
}

func (ep *epoch) resolved(creates []*create, sightings []sighting, err error) {
	if err != nil {
		ep.unresolved(creates, err)
		return
	}
	for i, c := range creates {
		if _, open := ep.open[c]; !open {
			continue // answered with another create of its transaction
		}
		if sightings[i].exists && sightings[i].stat.EphemeralOwner != ep.link.id.Load() {
			sightings[i] = sighting{} // of the same name, but not ours
		}
		c.since = time.Time{}
		switch {
		case c.joint != nil && c.node == "":
			ep.resolvedJoint(c, &sightings[i])
		case sightings[i].node != "":
			c.node = sightings[i].node
			fallthrough
		case c.node != "":
			ep.found(c, sightings[i], nil)
		default:
			ep.replace(c, errNotExecuted)
		}
	}
}

var errNotExecuted = fmt.Errorf("%w: it is repeatedly lost", zk.ErrAPIError)

// search looks for the nodes of creates in their directory, behind a barrier: one
// may still be on its way to this server.
func search(c client, directory string, creates []*create) ([]sighting, error) {
	found := make([]sighting, len(creates))
	err := barrier(c, directory)
	if isMissing(err) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	inside, err := c.Children(directory)
	if isMissing(err) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	return found, identify(c, directory, creates, inside, found)
}

// identify fills in found.
func identify(c client, directory string, creates []*create, inside listing, found []sighting) error {
	var g errgroup.Group
	g.SetLimit(8)
	for i, cr := range creates {
		node := cr.find(inside.children)
		if node == "" {
			continue
		}
		g.Go(func() (err error) {
			s := &found[i]
			s.node, s.listing = node, inside
			s.stat, s.exists, err = c.Exists(joinPath(directory, node))
			return err
		})
	}
	return g.Wait()
}

func (c *create) find(children []string) string {
	if c.beside == "" {
		return findNode(children, c.prefix)
	}
	if slices.Contains(children, c.prefix) {
		return c.prefix
	}
	return ""
}

// findNode is the child whose name is prefix and a sequence number.
func findNode(children []string, prefix string) string {
	for _, name := range children {
		if rest, ok := strings.CutPrefix(name, prefix); ok && isSequence(rest) {
			return name
		}
	}
	return ""
}

// isSequence tells what ZooKeeper appends to a name: ten digits, or a minus sign and
// nine or ten. The name of another prefix that begins alike has more.
func isSequence(s string) bool {
	_, err := strconv.ParseInt(s, 10, 32)
	digits := strings.TrimPrefix(s, "-")
	return err == nil && len(s) >= zkSeqSize && len(digits) <= zkSeqSize && digits[0] != '+'
}
