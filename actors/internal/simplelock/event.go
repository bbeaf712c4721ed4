package simplelock

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// Event is something that happened to a Contender. The types of this file are events. First
// come those of the request's owner, then those of the bridge.
type Event interface {
	apply(*Contender)
}

// Acquire is a new request. A Contender has one request at a time and refuses a second one.
type Acquire struct {
	ID   requests.ID
	Kind queue.Kind
	// Try refuses the request rather than let it wait.
	Try bool
	// NotifyContended asks for a NotifyContended, which comes with the grant.
	NotifyContended bool
	// Data is the data of the owner node.
	Data []byte
}

// Cancel withdraws the request, for the Reason. It releases a grant, too.
type Cancel struct {
	ID     requests.ID
	Reason requests.Reason
}

// Release releases the grant.
type Release struct{ ID requests.ID }

// Close refuses the request or ends its grant, and deletes the nodes.
type Close struct{ Reason requests.Reason }

// Tick says that a moment has passed. What has failed is tried again, and the nodes of a grant
// get a watch.
type Tick struct{}

// Session is a change of the ZooKeeper session: it is Live, or it is lost. A new session has a
// higher Epoch.
type Session struct {
	Epoch uint64
	Live  bool
}

// Transacted answers CreateNodes, WriteOwnerNode and DeleteNodes. The transaction is done as a
// whole; or not at all, because its operation Op failed.
type Transacted struct {
	Serial uint64
	Done   bool
	// Op is 0 if it concerns the owner node; in an answer to DeleteNodes it is 1 if it concerns
	// the lock node.
	Op uint32
	// Missing reports that the failed operation found no node.
	Missing bool
	// Czxid is the czxid of the owner node.
	Czxid int64
	// Generation is the generation in force at Czxid, if Reason is 0. Reason says why the
	// generation is not known: after NodeDeleted a later node has one.
	Generation uint64
	Reason     requests.Reason
}

// Listed answers ListDirectory.
type Listed struct {
	Serial   uint64
	Children []string
}

// Watched answers WatchNodes: all nodes except those Gone are watched now.
type Watched struct {
	Serial uint64
	Gone   []string
	// Data and Czxids are those of the nodes, if the effect had WithData.
	Data   map[string][]byte
	Czxids map[string]int64
}

// Wake reports that a watched node changed, or, if Node is empty, that a child of the watched
// directory came or went.
type Wake struct {
	Epoch uint64
	Node  string
}

// Deleted answers DeleteLockNode.
type Deleted struct{ Serial uint64 }

// Failed answers an effect that could not be done. OutcomeUnknown is the reason of a
// transaction that may have been done.
type Failed struct {
	Serial uint64
	Reason requests.Reason
}
