package simplelock

import "github.com/actorlock/actorlock/actors/internal/requests"

// EffectKind is what an Effect asks for.
type EffectKind uint8

// The effects. The bridge performs the first six, and its answer repeats their Serial.
const (
	// CreateNodes: create the lock node LockNode, if that is not empty, with the name OwnerNode
	// as its data, and the owner node with Data; answer Transacted or Failed.
	CreateNodes EffectKind = iota
	// WriteOwnerNode: write Data to the owner node, to learn whether it exists; answer Transacted
	// or Failed.
	WriteOwnerNode
	// DeleteNodes: delete the owner node, and the lock node if LockNode is not empty; answer
	// Transacted or Failed.
	DeleteNodes
	// DeleteLockNode: delete LockNode; answer Deleted.
	DeleteLockNode
	// WatchNodes: watch Nodes, and read their data if WithData; answer Watched or Failed, later
	// Wake for each node.
	WatchNodes
	// ListDirectory: read the names in the directory; answer Listed or Failed. Watch asks for a
	// Wake at the next child that comes or goes.
	ListDirectory
	// Grant: request ID holds the lock by OwnerNode, with the token Generation and Czxid.
	Grant
	// Refuse: request ID ends without the lock, because of Reason.
	Refuse
	// Lose: request ID holds the lock no longer, because of Reason.
	Lose
	// ConfirmRelease: the release of request ID is done.
	ConfirmRelease
	// NotifyContended: other contenders may wait for what request ID holds.
	NotifyContended
)

// Effect is one thing to do because of an event. Its Kind says which fields count.
type Effect struct {
	Kind       EffectKind
	ID         requests.ID
	Reason     requests.Reason
	Serial     uint64
	OwnerNode  string
	LockNode   string
	Nodes      []string
	WithData   bool
	Watch      bool
	Data       []byte
	Generation uint64
	Czxid      int64
}

var effectNames = [...]string{"CreateNodes", "WriteOwnerNode", "DeleteNodes", "DeleteLockNode", "WatchNodes", "ListDirectory", "Grant", "Refuse", "Lose", "ConfirmRelease", "NotifyContended"}

// String returns the name of the constant.
func (k EffectKind) String() string { return effectNames[k] }
