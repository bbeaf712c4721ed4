package semaphore

import (
	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// effect is a call of an PermitActor. AcquireLeases is one AcquireLease for each lease.
type effect struct {
	kind   string
	id     requests.ID
	reason requests.Reason
	serial uint64
	try    bool
	leases []Lease
}

// recorder is an PermitActor that keeps what it is asked for.
type recorder struct{ effects []effect }

func (r *recorder) add(e effect) { r.effects = append(r.effects, e) }

func (r *recorder) EnterRequestQueue(serial uint64, q requests.Incoming) {
	r.add(effect{kind: "EnterRequestQueue", serial: serial, try: q.Try})
}

func (r *recorder) LeaveRequestQueue(serial uint64) {
	r.add(effect{kind: "LeaveRequestQueue", serial: serial})
}

func (r *recorder) AcquireLeases(q requests.Incoming, serials []uint64) {
	for _, serial := range serials {
		r.add(effect{kind: "AcquireLease", id: q.ID, serial: serial, try: q.Try})
	}
}

func (r *recorder) WithdrawLease(serial uint64) { r.add(effect{kind: "WithdrawLease", serial: serial}) }

func (r *recorder) ReleaseLease(serial uint64) { r.add(effect{kind: "ReleaseLease", serial: serial}) }

func (r *recorder) ReportTurn(id requests.ID) { r.add(effect{kind: "ReportTurn", id: id}) }

func (r *recorder) GrantLeases(id requests.ID, leases []Lease) {
	r.add(effect{kind: "Grant", id: id, leases: leases})
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

// effectsSince returns what a State with a recorder has asked for since the last call.
func effectsSince(p *State) []effect {
	invariants.Check(p)
	r := p.actor.(*recorder)
	all := r.effects
	r.effects = nil
	return all
}
