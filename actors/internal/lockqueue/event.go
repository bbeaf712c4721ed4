package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// The events. Those of the requests' owners come first, then those of the process (Resize, Close,
// Tick), then those of the bridge. An answer repeats the Serial of its effect.

// Acquire is a new request for the lock. A request of a named owner that holds the lock enters
// again where the rule lets it. A Revocable one has its node watched from the grant on. For the
// others a Tick sets that watch once the last proof of the node is old: the first or second Tick
// after the grant, or a later one if a list proves the node meanwhile.
//
// An Atomic one is refused if its node is lost: a new one would be further back than the nodes in the
// other locks. It and the other requests of its owner for this lock never share a node: the owner
// would hold one lock of several while it waits for the others.
type Acquire requests.Incoming

// Cancel withdraws a request, for the Reason. It releases a grant, too.
type Cancel struct {
	ID     requests.ID
	Reason requests.Reason
	// Unclean reports that the work under the grant may go on: then the held marker stays, and the
	// next contender waits for the lock-delay.
	Unclean bool
}

// Release releases a grant.
type Release struct{ ID requests.ID }

// Resize changes how many contenders may hold beside each other. It ends no grant.
type Resize struct{ Permits int }

// Close refuses all requests, ends all grants and deletes all nodes.
type Close struct{ Reason requests.Reason }

// Tick comes from a timer, every second or more often. It sets a watch on the node of each holder,
// and of each contender that may hold next, which has neither a watch nor a proof since the Tick
// before.
type Tick struct{}

// Session is a change of the ZooKeeper session. A new session has a higher Epoch.
type Session struct {
	Epoch uint64
	State SessionState
}

// SessionState is the state of a ZooKeeper session.
type SessionState uint8

// The states of a session.
const (
	// Lost: there is no session. ZooKeeper has deleted the nodes of Epoch or will soon.
	Lost SessionState = iota
	// Suspended: the connection is gone. The session may live.
	Suspended
	// Connected: requests are served.
	Connected
)

// Created answers CreateNode.
type Created struct {
	Serial uint64
	Node   string
	// Token has the czxid of the node, and the generation in force then. Its Step is only the place
	// of the node among all nodes with the same czxid, in any directory: see grantedAlone. The nodes
	// of an atomic create share the place of the last of them.
	Token requests.Token
	// DirectoryCzxid is the czxid of the directory, which was read after the creation; 0 without a
	// read. A greater czxid than before is a new directory at the same path: the one before and all
	// in it were deleted.
	DirectoryCzxid int64
	// Children are the names in the directory if it was read and the effect had ListAfter. They may
	// also come if the bridge had to look for the node.
	Children []string
	// SameDirectory reports that one transaction deleted the node After of the effect and made
	// this node. The directory was not read then.
	SameDirectory bool
	// Recent reports that the bridge has sent the transaction within the last second, the longest
	// time between two Ticks.
	Recent bool
}

// Listed answers ListDirectory.
type Listed struct {
	Serial   uint64
	Children []string
	// DirectoryCzxid is 0 if the directory is missing.
	DirectoryCzxid int64
}

// Watched answers WatchNodes: all nodes except those Gone are watched now. It answers
// ReadHeldMarker, too (delay.go says what a held marker is for).
type Watched struct {
	Serial uint64
	Gone   []string
	// Data holds the data of the nodes, if the effect had WithData.
	Data map[string][]byte
}

// Wake reports that a watched node changed, or, if Node is empty, that a child of the watched
// directory came or went.
type Wake struct {
	Epoch   uint64
	Node    string
	Deleted bool
}

// Deleted answers DeleteNode. Missing reports that another client, or a transaction of
// unknown outcome, had deleted the node before.
type Deleted struct {
	Serial  uint64
	Missing bool
}

// Transacted answers CreateHeldMarker, ReplaceHeldMarker, DeleteWithHeldMarker and DeleteDirectory.
// If the transaction is not Done, nothing was done, because its operation Op failed: operation 0 is
// on the contender's node, operation 1 on the held marker.
type Transacted struct {
	Serial uint64
	Done   bool
	Op     uint32
}

// DelayElapsed answers StartDelay, which the lock's actor performs itself.
type DelayElapsed struct{ Serial uint64 }

// Failed answers an effect that could not be done. A CreateNode that failed for good may have made a node,
// which the bridge deletes and which is never granted. OutcomeUnknown is the reason of a transaction that
// may have been done.
type Failed struct {
	Serial uint64
	Reason requests.Reason
}
