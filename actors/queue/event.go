package queue

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
	// Tell has the request told, once and while it holds the lock, that others wait.
	Tell bool
	// Data is for the contender's node, should the request get one of its own.
	Data []byte
	// Joint: the node is made by one transaction with those of other locks. Should it
	// be gone, the request is refused rather than queued again: its place among the
	// others would not be theirs.
	Joint bool
	// Group is the number of that transaction, of all such of this process; 0 for none.
	// See State.Entry.
	Group uint64
	// Revocable has requests to release noticed from the first moment, rather than
	// when the lock has been held for a while.
	Revocable bool
	// Permits is how many of a Pool's permits are wanted, 1 or more.
	Permits int
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
	// Generation is the one that was in force at Czxid.
	Generation uint64
	// Step is the node's place among the nodes that share Czxid, in whatever directory.
	Step uint32
	// Directory is the czxid of the directory as read behind the creation, 0 if that is
	// not known: another one is another directory of the same path, made after the former
	// and all in it were deleted. Children is what was in it, if the effect had Look.
	Directory int64
	Children  []string
	// SameDirectory: one transaction deleted the effect's After and made the node. It was
	// not read what is in the directory.
	SameDirectory bool
}

// Listed answers DoList.
type Listed struct {
	Epoch, Serial uint64
	Children      []string
	// Czxids are those of the children, where they were asked for; 0 for one that has
	// gone since.
	Czxids []int64
	// Directory is the directory's czxid, 0 if it is missing.
	Directory int64
}

// Watched answers DoWatch: all nodes but those Gone are now watched. It answers
// DoLook as well.
type Watched struct {
	Epoch, Serial uint64
	Gone          []string
	// Data holds the nodes' data, if it was asked for, and Czxids the transactions that
	// made them.
	Data   map[string][]byte
	Czxids map[string]int64
}

// Wake: a watched node changed, or, if Node is empty, what is in the directory.
type Wake struct {
	Epoch   uint64
	Node    string
	Deleted bool
}

// Deleted answers DoDelete. Missing reports that there was no node: another client had
// deleted it before.
type Deleted struct {
	Serial  uint64
	Missing bool
}

// Transacted answers DoMark, DoRemark and DoClear: all is done, or nothing is, since
// Op stood against it: 0 is about the contender's node, 1 about the mark.
type Transacted struct {
	Serial uint64
	Done   bool
	Op     uint32
	// For a Simple: what stood against it is that a node is missing; the mark's czxid, and
	// the generation that was in force at it, or why that is not known: with NodeDeleted a
	// later mark has one.
	Missing    bool
	Czxid      int64
	Generation uint64
	Why        Why
}

// Elapsed answers DoDelay.
type Elapsed struct{ Serial uint64 }

// Failed answers DoCreate (no node of it will be granted; the bridge deletes one that may have been made), DoList or DoWatch, and
// the effects that are about the mark. Unknown is for what was done or not.
type Failed struct {
	Epoch, Serial uint64
	Why           Why
}

// Tick says that a moment has passed: what has not changed since the last Tick may
// last. Then it is worth a watch on the node of a holder, and of the next in line, to
// learn when somebody else deletes it.
type Tick struct{}

// Resize changes how many may hold beside each other. Those who hold go on to.
type Resize struct{ Permits int }

// Close ends everything: requests are refused, grants lost, nodes deleted.
type Close struct{ Why Why }

// Do says what an Effect asks for.
type Do uint8

// The effects. The first four are for the bridge, which repeats their Serial in the
// answer; the others for those who made requests.
const (
	// DoCreate: create an ephemeral sequential node with the prefix Node and Data, or,
	// if Beside is a node, an ephemeral one named Node while Beside is there; answer
	// Created or Failed, the latter with NotHeld if Beside is gone. With Look, read the
	// names in the directory behind the creation. After is a node whose DoDelete came before,
	// or empty: no read is needed where one transaction deletes it and makes the new one. ID is the request's if that is Joint, else 0.
	DoCreate Do = iota
	// DoList: list the directory, WithCzxids or without; answer Listed or Failed. With
	// Watch, later Wake, when a child of it comes or goes.
	DoList
	// DoWatch: watch Nodes; answer Watched or Failed, later Wake for each. WithData:
	// tell their data, too.
	DoWatch
	// DoDelete: delete Node, which was created under this Serial; answer Deleted. With
	// Reset the directory is to go with it if nothing else is in it, so that its
	// sequence numbers begin anew.
	DoDelete
	// DoGrant: request ID holds the lock by Node, with token Generation, Czxid and Step.
	// For a Lender: by what was borrowed under this Serial.
	DoGrant
	// DoRefuse: request ID ends without the lock, because of Why.
	DoRefuse
	// DoLose: request ID holds the lock no longer, because of Why.
	DoLose
	// DoReleased: the release of request ID is done; StillHeld others of its
	// owner hold the lock yet.
	DoReleased
	// DoRevoke: somebody wants request ID, which holds the lock, to give it back.
	DoRevoke
	// DoRestore: write Data to Node again; there is no answer.
	DoRestore
	// DoReport: the directory has a child, Node, that is no contender. Each name
	// is reported once.
	DoReport
	// DoContended: others wait for what request ID holds.
	DoContended

	// The rest is for rules with a Delay. The mark is a node outside of the directory.

	// DoMark: while Node is there, make the mark, which tells Node; answer Transacted
	// or Failed.
	DoMark
	// DoRemark: while Node is there, let the mark that is there tell Node; answer
	// Transacted or Failed.
	DoRemark
	// DoClear: delete Node and the mark; answer Transacted or Failed.
	DoClear
	// DoLook: read the mark; answer Watched or Failed.
	DoLook
	// DoDelay: answer Elapsed after the delay.
	DoDelay
	// DoReportMark: the mark could not be removed, because of Why.
	DoReportMark

	// The rest is for those who keep a Lender.

	// DoBorrow: acquire the lock for Kind, as a Try or not, as the owner of what else has
	// been borrowed and not returned; answer Borrowed or NotBorrowed, later Forfeited,
	// Wanted and Overdue if they come to pass.
	DoBorrow
	// DoReturn: release what was borrowed under this Serial, be it lost, or withdraw the
	// request for it. No answer counts any more.
	DoReturn
	// DoLinger: answer Lingered when the loan may have been unused for long.
	DoLinger

	// The rest is for a Simple, whose mark is Node. Transacted or Failed answers.

	// DoTake: make the gate Beside, if there is a name, and the mark with Data.
	DoTake
	// DoProve: write Data to the mark, to learn whether it is there.
	DoProve
	// DoLeave: delete the mark (op 0), and the gate Beside, if there is a name (op 1).
	DoLeave
)

// Effect is one thing to do because of an event. Which fields count is told by Do.
type Effect struct {
	Do        Do
	ID        ID
	Why       Why
	Serial    uint64
	Node      string
	Nodes     []string
	WithData  bool
	Beside    string
	After     string
	Watch     bool
	Look      bool
	Exists    bool // DoCreate: a contender of this process is in the directory
	Kind      Kind
	Try       bool
	Data      []byte
	Czxid     int64
	Step      uint32
	StillHeld int

	Generation        uint64
	WithCzxids, Reset bool
}
