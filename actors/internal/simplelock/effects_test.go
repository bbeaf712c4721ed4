package simplelock

import (
	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// event is a call of a Contender.
type event func(*Contender)

// effect is a call of an ContenderActor.
type effect struct {
	kind       string
	id         requests.ID
	reason     requests.Reason
	serial     uint64
	ownerNode  string
	lockNode   string
	nodes      []string
	watch      bool
	data       []byte
	generation uint64
	czxid      int64
}

func (e effect) String() string { return e.kind }

// recorder is an ContenderActor that keeps what it is asked for.
type recorder struct{ effects []effect }

func (r *recorder) add(e effect) { r.effects = append(r.effects, e) }

func (r *recorder) CreateNodes(serial uint64, lockNode, ownerNode string, data []byte) {
	r.add(effect{kind: "CreateNodes", serial: serial, lockNode: lockNode, ownerNode: ownerNode, data: data})
}

func (r *recorder) DeleteNodes(serial uint64, nodes []string) {
	r.add(effect{kind: "DeleteNodes", serial: serial, nodes: nodes})
}

func (r *recorder) WatchNodes(serial uint64, nodes []string) {
	r.add(effect{kind: "WatchNodes", serial: serial, nodes: nodes})
}

func (r *recorder) ListDirectory(serial uint64, watch bool) {
	r.add(effect{kind: "ListDirectory", serial: serial, watch: watch})
}

func (r *recorder) GrantBy(id requests.ID, ownerNode string, generation uint64, czxid int64) {
	r.add(effect{kind: "Grant", id: id, ownerNode: ownerNode, generation: generation, czxid: czxid})
}

func (r *recorder) RefuseRequest(id requests.ID, why requests.Reason) {
	r.add(effect{kind: "Refuse", id: id, reason: why})
}

func (r *recorder) Lose(id requests.ID, why requests.Reason) {
	r.add(effect{kind: "Lose", id: id, reason: why})
}

func (r *recorder) ConfirmRelease(id requests.ID, _ int) {
	r.add(effect{kind: "ConfirmRelease", id: id})
}

func (r *recorder) RequestRevoke(id requests.ID) { r.add(effect{kind: "RequestRevoke", id: id}) }

func (r *recorder) NotifyContended(id requests.ID) { r.add(effect{kind: "NotifyContended", id: id}) }

// step applies an event to a Contender with a recorder, and returns the effects.
func step(s *Contender, e event) []effect {
	r := s.actor.(*recorder)
	r.effects = nil
	e(s)
	invariants.Check(s)
	return r.effects
}

func failed(serial uint64, why requests.Reason) event {
	return func(s *Contender) { s.Failed(serial, why) }
}

func cancelled(id requests.ID) event {
	return func(s *Contender) { s.Cancel(id, requests.Cancelled) }
}
