package recipes

import (
	"encoding/binary"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// permitCount is how a semaphore's actor follows the node that says how many permits there are. It
// is a client of the bridge of its own, and gets the answers within the semaphore's actor.
type permitCount struct {
	messages.IgnoreBridgeClient[ask.Recipient]
	semaphore *semaphoreActor
	directory string
	node      string
	lastID    uint64 // of the latest question; answers to earlier ones are ignored
	readAgain bool   // at the next tick
	// late has the requests that came behind the question whose answer is awaited: the program may
	// have made a directory before them that was missing then.
	late map[requests.ID]bool

	// reason and problem say why the number has never been known; reason is 0 otherwise.
	reason  messages.Reason
	problem string
}

func newPermitCount(s *semaphoreActor) *permitCount {
	directory, node := zkpath.Split(s.Recipe.CountPath)
	return &permitCount{semaphore: s, directory: directory, node: node}
}

// read reads the node and watches it.
func (c *permitCount) read() {
	c.lastID++
	c.readAgain, c.late = false, nil
	c.semaphore.bridge().SendWatch(&messages.Watch{Id: c.lastID, Epoch: c.semaphore.epoch, Directory: c.directory,
		Nodes: []string{c.node}, WithData: true}, c)
}

// retry reads at once, for a request, if a directory was missing: the program may have made it
// before the request.
func (c *permitCount) retry() bool {
	if c.reason != messages.Reason_NO_DIRECTORY || c.semaphore.lost {
		return false
	}
	c.reason, c.problem = 0, ""
	c.read()
	return true
}

// noteRequest notes a request that comes while no answer says that a directory is missing.
func (c *permitCount) noteRequest(id requests.ID) {
	if c.semaphore.state.Sized() {
		return
	}
	if c.late == nil {
		c.late = map[requests.ID]bool{}
	}
	c.late[id] = true
}

func (c *permitCount) create() {
	c.lastID++
	c.late = nil
	create := &messages.Transact{Id: c.lastID, Epoch: c.semaphore.epoch, Directory: c.directory, Ops: []*messages.Op{
		{Kind: messages.Op_CREATE, Path: c.semaphore.Recipe.CountPath, Data: CountData(c.semaphore.Recipe.Permits)}}}
	if c.semaphore.Recipe.RequireDirectory {
		create.Directory = "" // it may be the lock's, or below it
	}
	c.semaphore.bridge().SendTransact(create, c)
}

func (c *permitCount) onData(data []byte) {
	n, err := ParseCount(c.semaphore.Recipe.CountPath, data)
	if err != nil {
		c.onUnknown(messages.Reason_INVALID, err.Error())
		return
	}
	c.reason, c.problem, c.late = 0, "", nil
	n = max(n, 0)
	feed(c.semaphore.leases, lockqueue.Resize{Permits: n})
	c.semaphore.state.Resize(n)
}

// onUnknown refuses the waiting requests if the number was never known: if a directory was missing,
// those that came before that, and reads again for the others. Otherwise the number
// stays what it was. The log has no line of a missing directory: the program deletes it with its
// object.
func (c *permitCount) onUnknown(reason messages.Reason, problem string) {
	s := c.semaphore
	if reason != messages.Reason_NO_DIRECTORY {
		s.Manager.Log.Warn("the number of a semaphore's permits cannot be read", "path", s.Path, "problem", problem,
			"do", "write a number to the node, and grant READ; the last number stays in force")
	}
	if s.state.Sized() {
		return
	}
	late := c.late
	if reason != messages.Reason_NO_DIRECTORY || len(late) == 0 {
		c.reason, c.problem, late = reason, problem, nil
	} else {
		c.read()
	}
	s.Detail = problem
	for _, r := range s.Requests() {
		if !late[r.ID] {
			s.state.Cancel(r.ID, requests.Reason(reason))
		}
	}
}

// countAnswer is what the bridge tells a permitCount.
type countAnswer struct{ answer any }

// Tell implements ask.Recipient.
func (c *permitCount) Tell(answer any) { c.semaphore.Self.Tell(countAnswer{answer}) }

// Wake implements messages.BridgeClientHandler.
func (c *permitCount) Wake(_ ask.Recipient, msg *messages.Wake) {
	if msg.Epoch == c.semaphore.epoch {
		c.read()
	}
}

// Watched implements messages.BridgeClientHandler.
func (c *permitCount) Watched(_ ask.Recipient, msg *messages.Watched) {
	switch {
	case msg.Id != c.lastID:
	case len(msg.Gone) > 0:
		c.create()
	default:
		c.onData(msg.Data[c.node])
	}
}

// Transacted implements messages.BridgeClientHandler. This process or another has created the node,
// unless a directory that must exist is missing.
func (c *permitCount) Transacted(_ ask.Recipient, msg *messages.Transacted) {
	switch {
	case msg.Id != c.lastID:
	case msg.Outcome == messages.Transacted_NO_NODE:
		c.readAgain = true
		c.onUnknown(messages.Reason_NO_DIRECTORY, "directory "+c.directory+" of the number of permits does not exist")
	default:
		c.read()
	}
}

// Failed implements messages.BridgeClientHandler.
func (c *permitCount) Failed(_ ask.Recipient, msg *messages.Failed) {
	switch {
	case msg.Id != c.lastID || msg.Reason == messages.Reason_SESSION_LOST:
	case msg.Reason == messages.Reason_CLOSED: // SessionChanged says what follows
	case msg.Reason == messages.Reason_OUTCOME_UNKNOWN:
		c.read()
	default:
		c.readAgain = true
		c.onUnknown(msg.Reason, msg.Detail)
	}
}

// The node of a shared count is compatible with Curator's SharedCount: its data are four bytes, the
// highest first.

// CountData returns the data of a count.
func CountData(value int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(int32(value))) }

// ParseCount returns the value of a count's data.
func ParseCount(path string, data []byte) (int, error) {
	if len(data) != 4 {
		return 0, check.Invalid(fmt.Sprintf("count %s: its data are %d bytes, and must be 4", path, len(data)))
	}
	return int(int32(binary.BigEndian.Uint32(data))), nil
}
