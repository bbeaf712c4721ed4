package requests

// EffectKind is what an Effect asks for.
type EffectKind uint8

// The effects for the owner of a request, or for the machine on top that has made the request: there
// they are news.
const (
	// Grant: request ID holds the lock with the Token, by Node. (Of a local queue: by the request
	// By below it. Of a semaphore: by the nodes of the effects NoteNode before.)
	Grant EffectKind = iota
	// Refuse: request ID ends without the lock, or its release fails, because of Reason.
	Refuse
	// Lose: request ID holds the lock no longer, because of Reason.
	Lose
	// ConfirmRelease: the release of request ID is done. StillHeld other requests of its owner hold
	// the lock yet.
	ConfirmRelease
	// RequestRevoke: another client asks request ID, which holds the lock, to release it. A request
	// may get several.
	RequestRevoke
	// NotifyContended: contenders of other processes may wait for what request ID holds.
	NotifyContended
)

// IsNews reports whether the effect is for the owner of a request, or for the machine on top.
func (k EffectKind) IsNews() bool { return k <= NotifyContended }

// The other effects of a machine on top of others: for the machine number Below, or for its actor.
const (
	// Acquire: begin the Request, which has ID. Each such request ends by a Refuse, a Lose or
	// a ConfirmRelease. A semaphore makes it for the owner's request By. More reports that the next
	// effect is one, too, and that one transaction is to make the nodes of both if they fit into one.
	Acquire EffectKind = iota + NotifyContended + 1
	// Cancel: withdraw request ID, or take back what it was granted, also if it is lost.
	Cancel
	// Release: take back what request ID was granted. ConfirmRelease or Refuse answers it, also
	// if it is lost.
	Release
	// NoteNode: grants that follow are by the Node of request ID below, which has the Token. First
	// reports that the node hold of a local queue begins with it: TimeBudgetUsed must be called once
	// that has lasted as long as it may.
	NoteNode
	// StartIdleTimer: a local queue's IdleTimedOut must be called when the node hold may have been
	// unused for long.
	StartIdleTimer
	// ReportTurn: request ID, of a multi-lock, has passed the request queue of a semaphore, whose
	// Proceed must be called once the multi-lock has passed those of all its semaphores.
	ReportTurn
)

// The effects of a lockqueue that the bridge performs. One that is answered has a Serial of its own,
// which the answer repeats; DeleteNode has the Serial of the CreateNode.
const (
	// CreateNode: create an ephemeral sequential node of Owner with the prefix Node and with Data.
	// With Guard, create an ephemeral node named Node only if the node Guard exists, and
	// otherwise answer Failed with NotHeld. Answer Created or Failed.
	//
	// After the creation the bridge reads the czxid of the directory, and with ListAfter also the
	// names in it. After, if not empty, names a node of this process whose DeleteNode came before.
	// If one transaction deletes that node and makes the new one, both nodes are in one directory,
	// and the bridge reads nothing. ID is the request if that is Atomic, otherwise 0.
	CreateNode EffectKind = iota + ReportTurn + 1
	// ListDirectory: read the names in the directory; answer Listed or Failed. Watch asks for a
	// Wake at the next child that comes or goes.
	ListDirectory
	// WatchNodes: watch Nodes, and read their data if WithData; answer Watched or Failed, later
	// Wake for each node. With Since, one message sets all watches, and nothing is read. A Wake
	// then comes at once for a node that is gone, or that was made or written after that zxid.
	WatchNodes
	// DeleteNode: delete Node, which was created under this Serial; answer Deleted, or Failed if
	// the node may remain.
	DeleteNode
	// DeleteDirectory: delete the directory if nothing is in it, so that its numbers begin anew;
	// answer Transacted or Failed.
	DeleteDirectory
	// RestoreData: write Data to Node, which is of Owner: a revoke has overwritten it. There is no
	// answer.
	RestoreData
	// CreateHeldMarker: create the held marker, with the name Node as its data, while Node exists;
	// answer Transacted or Failed. The held marker is a node outside of the directory, which stays
	// if its holder does not release.
	CreateHeldMarker
	// ReplaceHeldMarker: write the name Node to the held marker that exists, while Node exists;
	// answer Transacted or Failed.
	ReplaceHeldMarker
	// DeleteWithHeldMarker: delete Node and the held marker; answer Transacted or Failed.
	DeleteWithHeldMarker
	// ReadHeldMarker: read the held marker; answer Watched or Failed.
	ReadHeldMarker
)

// The effects of a lockqueue that the lock's actor performs itself.
const (
	// StartDelay: answer DelayElapsed after the lock-delay.
	StartDelay EffectKind = iota + ReadHeldMarker + 1
	// ReportUnknownChild: the name of the child Node of the directory has no known form. Each of
	// the first 100 such names is reported once.
	ReportUnknownChild
	// ReportClients: contenders are in the directory that do not wait for each other, of Curator's
	// clients and of clients with names that Curator does not know. It is reported once.
	ReportClients
	// ReportPermits: the contender Node is of a process that uses the lock with another number of
	// permits, Permits. It is reported for each such contender.
	ReportPermits
	// ReportHeldMarker: the held marker could not be deleted, because of Reason.
	ReportHeldMarker
)

var effectNames = [...]string{"Grant", "Refuse", "Lose", "ConfirmRelease", "RequestRevoke", "NotifyContended",
	"Acquire", "Cancel", "Release", "NoteNode", "StartIdleTimer", "ReportTurn",
	"CreateNode", "ListDirectory", "WatchNodes", "DeleteNode", "DeleteDirectory", "RestoreData",
	"CreateHeldMarker", "ReplaceHeldMarker", "DeleteWithHeldMarker", "ReadHeldMarker",
	"StartDelay", "ReportUnknownChild", "ReportClients", "ReportPermits", "ReportHeldMarker"}

// String returns the name of the constant.
func (k EffectKind) String() string { return effectNames[k] }

// Effect is one thing to do because of an event. Its Kind says which fields count. The kinds from
// CreateNode on have further fields, in lockqueue.Effect: effects of other machines are copied faster
// without them.
type Effect struct {
	Kind      EffectKind
	Reason    Reason
	First     bool
	More      bool
	Below     uint8
	StillHeld int
	ID        ID
	By        ID
	Token     Token
	Node      string // of CreateNode without Guard, the name up to the sequence number
	Request   *Incoming
}
