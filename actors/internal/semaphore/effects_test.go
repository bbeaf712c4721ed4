package semaphore

import (
	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// recorder is a PermitActor that records the effects.
type recorder struct{ machinetest.Recorder }

func (r *recorder) EnterRequestQueue(serial uint64, q requests.Incoming) {
	r.Record(machinetest.Effect{Kind: "EnterRequestQueue", Serial: serial, Try: q.Try})
}

func (r *recorder) LeaveRequestQueue(serial uint64) {
	r.Record(machinetest.Effect{Kind: "LeaveRequestQueue", Serial: serial})
}

func (r *recorder) AcquireLeases(q requests.Incoming, serials []uint64) {
	for _, serial := range serials {
		r.Record(machinetest.Effect{Kind: "AcquireLease", ID: q.ID, Serial: serial, Try: q.Try})
	}
}

func (r *recorder) WithdrawLease(serial uint64) {
	r.Record(machinetest.Effect{Kind: "WithdrawLease", Serial: serial})
}

func (r *recorder) ReleaseLease(serial uint64) {
	r.Record(machinetest.Effect{Kind: "ReleaseLease", Serial: serial})
}

func (r *recorder) ReportTurn(id requests.ID) {
	r.Record(machinetest.Effect{Kind: "ReportTurn", ID: id})
}

func (r *recorder) GrantLeases(id requests.ID, leases []Lease) {
	r.Record(machinetest.Effect{Kind: "Grant", ID: id, Leases: leases})
}

// takeEffects returns the effects of a State with a recorder since the last call.
func takeEffects(s *State) []machinetest.Effect {
	invariants.Check(s)
	return s.actor.(*recorder).Take()
}
