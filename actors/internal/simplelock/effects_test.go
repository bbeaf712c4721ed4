package simplelock

import (
	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// recorder is a ContenderActor that records the effects.
type recorder struct{ machinetest.Recorder }

func (r *recorder) CreateNodes(serial uint64, lockNode, ownerNode string, data []byte) {
	r.Record(machinetest.Effect{Kind: "CreateNodes", Serial: serial, LockNode: lockNode, OwnerNode: ownerNode, Data: data})
}

func (r *recorder) DeleteNodes(serial uint64, nodes []string) {
	r.Record(machinetest.Effect{Kind: "DeleteNodes", Serial: serial, Nodes: nodes})
}

func (r *recorder) WatchNodes(serial uint64, nodes []string) {
	r.Record(machinetest.Effect{Kind: "WatchNodes", Serial: serial, Nodes: nodes})
}

func (r *recorder) ListDirectory(serial uint64, watch bool) {
	r.Record(machinetest.Effect{Kind: "ListDirectory", Serial: serial, Watch: watch})
}

func (r *recorder) GrantBy(id requests.ID, ownerNode string, generation uint64, czxid int64) {
	r.Record(machinetest.Effect{Kind: "Grant", ID: id, OwnerNode: ownerNode, Generation: generation, Czxid: czxid})
}

// contenderEvent is a call of a Contender.
type contenderEvent func(*Contender)

// step applies an event to a Contender with a recorder, and returns the effects.
func step(s *Contender, e contenderEvent) []machinetest.Effect {
	e(s)
	invariants.Check(s)
	return s.actor.(*recorder).Take()
}

func failed(serial uint64, why requests.Reason) contenderEvent {
	return func(s *Contender) { s.Failed(serial, why) }
}

func cancelled(id requests.ID) contenderEvent {
	return func(s *Contender) { s.Cancel(id, requests.Cancelled) }
}

func transacted(serial uint64, t Transaction) contenderEvent {
	return func(s *Contender) { s.Transacted(serial, t) }
}
