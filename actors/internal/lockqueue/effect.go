package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// EffectKind is what an Effect asks for.
type EffectKind uint8

// The effects that the bridge performs. One that is answered has a Serial of its own, which the
// answer repeats; DeleteNode has the Serial of the CreateNode.
const (
	// CreateNode: create an ephemeral sequential node of Owner with the prefix Node and with Data.
	// With Beside, create an ephemeral node named Node only if the node Beside exists, and
	// otherwise answer Failed with NotHeld. Answer Created or Failed.
	//
	// After the creation the bridge reads the czxid of the directory, and with ListAfter also the
	// names in it. After, if not empty, names a node of this process whose DeleteNode came before.
	// If one transaction deletes that node and makes the new one, both nodes are in one directory,
	// and the bridge reads nothing. ID is the request of an atomic create (see Acquire.Atomic),
	// else 0.
	CreateNode EffectKind = iota
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

// The effects that the lock's actor performs itself.
const (
	// StartDelay: answer DelayElapsed after the lock-delay.
	StartDelay EffectKind = iota + ReadHeldMarker + 1
	// Tell: an effect of the kind Told, for the owner of request ID or for the machine on top.
	Tell
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

// Effect is one thing to do because of an event. Its Kind says which fields count.
type Effect struct {
	Kind      EffectKind
	Told      requests.EffectKind
	ID        requests.ID
	Reason    requests.Reason
	Serial    uint64
	Node      string // of CreateNode without Beside, the name up to the sequence number
	Nodes     []string
	WithData  bool
	Since     int64
	Beside    string
	After     string
	Watch     bool
	ListAfter bool
	// DirectoryExists reports, of CreateNode, that a contender of this process is in the directory.
	// If it is false, the directory may be missing. The bridge then sends later creates in it only
	// in the same transaction or after the answer to this one, so that the creates keep their
	// order. (A deletion of a node of the directory, earlier in the same transaction, shows the
	// bridge that the directory exists.)
	DirectoryExists bool
	// DirectorySeen reports, of CreateNode, that this process has seen the directory in this
	// session.
	DirectorySeen bool
	Data          []byte
	Owner         string
	Token         requests.Token
	StillHeld     int
	Permits       int
}

var effectNames = [...]string{"CreateNode", "ListDirectory", "WatchNodes", "DeleteNode", "DeleteDirectory", "RestoreData", "CreateHeldMarker", "ReplaceHeldMarker",
	"DeleteWithHeldMarker", "ReadHeldMarker", "StartDelay", "Tell",
	"ReportUnknownChild", "ReportClients", "ReportPermits", "ReportHeldMarker"}

// String returns the name of the constant.
func (k EffectKind) String() string { return effectNames[k] }

// Answer returns a Tell as the Effect for the owner or the machine on top.
func (f *Effect) Answer() requests.Effect {
	return requests.Effect{Kind: f.Told, ID: f.ID, Reason: f.Reason, Node: f.Node, Token: f.Token, StillHeld: f.StillHeld}
}
