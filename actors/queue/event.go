package queue

// ID names a request for the lock. Whoever makes the events chooses it, never
// twice for one State.
type ID uint64

// Why says why a request is refused or a grant is lost. The numbers are those of
// Reason in lock.proto.
type Why int32

// What Step itself finds; others come in with events and go out unchanged.
const (
	NotAcquired Why = 1
	TimedOut    Why = 2
	Cancelled   Why = 3
	SessionLost Why = 4
	NodeDeleted Why = 5
	Closed      Why = 6
	NotHeld     Why = 7
	Exhausted   Why = 11
)

// Event is something that happened to a lock. The types of this file are events.
type Event interface {
	apply(*State)
}

// Acquire: somebody asks for the lock.
type Acquire struct {
	ID ID
	// Owner makes a request of the present holder a re-entry. Empty: nobody's.
	Owner string
	Kind  Kind
	// Try refuses the request rather than let it wait for others.
	Try bool
	// Data is for the contender's node, should the request get one of its own.
	Data []byte
}

// Cancel withdraws a request, for the reason Why. A grant is given back.
type Cancel struct {
	ID  ID
	Why Why
}

// Release gives a grant back.
type Release struct{ ID ID }

// Session tells of the ZooKeeper session. Epoch is its number; a new session has a
// higher one.
type Session struct {
	Epoch uint64
	State SessionState
}

// SessionState is what Session tells.
type SessionState uint8

// The states of a session.
const (
	// Lost: there is no session; nodes of Epoch are gone or soon will be.
	Lost SessionState = iota
	// Suspended: the connection is gone, the session may live.
	Suspended
	// Connected: requests are served.
	Connected
)

// Created answers DoCreate.
type Created struct {
	Epoch, Serial uint64
	Node          string
	Czxid         int64
	// Step is the node's place among the directory's nodes that share Czxid.
	Step uint32
	// Others is how many nodes were in the directory right after the creation,
	// without those created in the same transaction; -1 if not known.
	Others int
	// Children is what was in the directory afterwards, if Others is not known.
	Children []string
	// Directory is the czxid of the directory: another one is another directory
	// of the same path, made after the former and all in it were deleted.
	Directory int64
}

// Listed answers DoList.
type Listed struct {
	Epoch, Serial uint64
	Children      []string
	// Directory is the directory's czxid, 0 if it is missing.
	Directory int64
}

// Watched answers DoWatch: all nodes but those Gone are now watched.
type Watched struct {
	Epoch, Serial uint64
	Gone          []string
}

// Wake: a watched node changed.
type Wake struct {
	Epoch   uint64
	Node    string
	Deleted bool
}

// Deleted answers DoDelete.
type Deleted struct{ Serial uint64 }

// Failed answers DoCreate (no node was made, or none is left), DoList or DoWatch.
type Failed struct {
	Epoch, Serial uint64
	Why           Why
}

// Tick says that a moment has passed: what has not changed since the last Tick may
// last. Then it is worth a watch on the node of a holder, and of the next in line, to
// learn when somebody else deletes it.
type Tick struct{}

// Close ends everything: requests are refused, grants lost, nodes deleted.
type Close struct{ Why Why }

// Do says what an Effect asks for.
type Do uint8

// The effects. The first four are for the bridge, which repeats their Serial in the
// answer; the others for those who made requests.
const (
	// DoCreate: create an ephemeral sequential node with the prefix Node and Data;
	// answer Created or Failed.
	DoCreate Do = iota
	// DoList: list the directory; answer Listed or Failed.
	DoList
	// DoWatch: watch Nodes; answer Watched or Failed, later Wake for each.
	DoWatch
	// DoDelete: delete Node, which was created under this Serial; answer Deleted.
	DoDelete
	// DoGrant: request ID holds the lock by Node, with token Czxid and Step.
	DoGrant
	// DoRefuse: request ID ends without the lock, because of Why.
	DoRefuse
	// DoLose: request ID holds the lock no longer, because of Why.
	DoLose
	// DoReleased: the release of request ID is done; StillHeld others of its
	// owner hold the lock yet.
	DoReleased
	// DoReport: the directory has a child, Node, that is no contender. Each name
	// is reported once.
	DoReport
)

// Effect is one thing to do because of an event. Which fields count is told by Do.
type Effect struct {
	Do        Do
	ID        ID
	Why       Why
	Serial    uint64
	Node      string
	Nodes     []string
	Data      []byte
	Czxid     int64
	Step      uint32
	StillHeld int
}
