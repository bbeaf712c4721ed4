package machinetest

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// Effect is a call of a machine's actor: the name and the arguments of the method. GrantBy and
// GrantLeases are a Grant, RefuseRequest is a Refuse, and AcquireLeases is one AcquireLease for
// each lease.
type Effect struct {
	Kind      string
	ID        requests.ID
	Reason    requests.Reason
	StillHeld int
	Serial    uint64
	NodeKind  queue.Kind
	Try       bool
	Watch     bool
	Data      []byte
	Nodes     []string
	Token     requests.Token
	Leases    any // []semaphore.Lease
}

func (e Effect) String() string { return e.Kind }

// Show returns the line of an effect that answers a request's owner.
func (e Effect) Show() string { return ShowAnswer(e, e.ID, e.Reason, e.StillHeld) }

// Recorder records the effects of a machine. It has the methods by which machines answer owners.
type Recorder struct{ effects []Effect }

// Record adds an effect.
func (r *Recorder) Record(e Effect) { r.effects = append(r.effects, e) }

// Take returns the effects since the last call.
func (r *Recorder) Take() []Effect {
	all := r.effects
	r.effects = nil
	return all
}

func (r *Recorder) RefuseRequest(id requests.ID, why requests.Reason) {
	r.Record(Effect{Kind: "Refuse", ID: id, Reason: why})
}

func (r *Recorder) Lose(id requests.ID, why requests.Reason) {
	r.Record(Effect{Kind: "Lose", ID: id, Reason: why})
}

func (r *Recorder) ConfirmRelease(id requests.ID, stillHeld int) {
	r.Record(Effect{Kind: "ConfirmRelease", ID: id, StillHeld: stillHeld})
}

func (r *Recorder) RequestRevoke(id requests.ID) { r.Record(Effect{Kind: "RequestRevoke", ID: id}) }

func (r *Recorder) NotifyContended(id requests.ID) { r.Record(Effect{Kind: "NotifyContended", ID: id}) }

// LocalRecorder is a localqueue.QueueActor that records the effects.
type LocalRecorder struct{ Recorder }

func (r *LocalRecorder) AcquireNode(serial uint64, kind queue.Kind, try bool, data []byte) {
	r.Record(Effect{Kind: "AcquireNode", Serial: serial, NodeKind: kind, Try: try, Data: data})
}

func (r *LocalRecorder) ReleaseNode(serial uint64) {
	r.Record(Effect{Kind: "ReleaseNode", Serial: serial})
}

func (r *LocalRecorder) StartIdleTimer() { r.Record(Effect{Kind: "StartIdleTimer"}) }

func (r *LocalRecorder) GrantBy(id requests.ID, serial uint64, token requests.Token) {
	r.Record(Effect{Kind: "Grant", ID: id, Serial: serial, Token: token})
}
