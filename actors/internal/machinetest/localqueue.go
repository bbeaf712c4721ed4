package machinetest

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// LocalEffect is a call of a localqueue.QueueActor: the method's name and arguments.
type LocalEffect struct {
	Kind       string
	ID         requests.ID
	Reason     requests.Reason
	Serial     uint64
	NodeKind   queue.Kind
	Try        bool
	Data       []byte
	Generation uint64
	Czxid      int64
	Step       uint32
	StillHeld  int
}

func (e LocalEffect) String() string { return e.Kind }

// LocalRecorder is a localqueue.QueueActor that keeps what it is asked for.
type LocalRecorder struct{ effects []LocalEffect }

// Take returns what the LocalRecorder was asked for since the last call.
func (r *LocalRecorder) Take() []LocalEffect {
	all := r.effects
	r.effects = nil
	return all
}

func (r *LocalRecorder) add(e LocalEffect) { r.effects = append(r.effects, e) }

func (r *LocalRecorder) AcquireNode(serial uint64, kind queue.Kind, try bool, data []byte) {
	r.add(LocalEffect{Kind: "AcquireNode", Serial: serial, NodeKind: kind, Try: try, Data: data})
}

func (r *LocalRecorder) ReleaseNode(serial uint64) {
	r.add(LocalEffect{Kind: "ReleaseNode", Serial: serial})
}

func (r *LocalRecorder) StartIdleTimer() { r.add(LocalEffect{Kind: "StartIdleTimer"}) }

func (r *LocalRecorder) GrantBy(id requests.ID, serial, generation uint64, czxid int64, step uint32) {
	r.add(LocalEffect{Kind: "Grant", ID: id, Serial: serial, Generation: generation, Czxid: czxid, Step: step})
}

func (r *LocalRecorder) RefuseRequest(id requests.ID, why requests.Reason) {
	r.add(LocalEffect{Kind: "Refuse", ID: id, Reason: why})
}

func (r *LocalRecorder) Lose(id requests.ID, why requests.Reason) {
	r.add(LocalEffect{Kind: "Lose", ID: id, Reason: why})
}

func (r *LocalRecorder) ConfirmRelease(id requests.ID, stillHeld int) {
	r.add(LocalEffect{Kind: "ConfirmRelease", ID: id, StillHeld: stillHeld})
}

func (r *LocalRecorder) RequestRevoke(id requests.ID) {
	r.add(LocalEffect{Kind: "RequestRevoke", ID: id})
}

func (r *LocalRecorder) NotifyContended(id requests.ID) {
	r.add(LocalEffect{Kind: "NotifyContended", ID: id})
}
