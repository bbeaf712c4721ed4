package semaphore

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// How a Pool's requests pass the gate and come by their leases.

func (p *State) enter(q *party) {
	p.serials++
	q.gate = p.serials
	p.gates[q.gate] = q
	p.order(Effect{Kind: EnterRequestQueue, Serial: q.gate, Try: q.Try})
}

// Granted: the request serial is past the gate, or has its lease. Granted ignores requests
// that were left: they are on their way back.
func (p *State) Granted(l Lease) {
	if q := p.gates[l.Serial]; q != nil {
		q.past = true
		p.next = append(p.next, q)
		if q.Try {
			p.tries++
		}
		p.ask()
		return
	}
	q := p.leases[l.Serial]
	if q == nil {
		return
	}
	i := slices.IndexFunc(q.leases, func(asked Lease) bool { return asked.Serial == l.Serial })
	q.leases[i] = l
	q.lacks--
	p.lacking--
	switch {
	case !q.MultiLock && q != p.asked[0]:
		p.back(q)
	case q.lacks == 0:
		p.grant(q)
	}
	p.ask()
}

func (p *State) grant(q *party) {
	if !q.MultiLock {
		p.asked[0] = nil
		p.asked = p.asked[1:]
	}
	q.held, q.past = true, false
	p.leaveGate(q)
	p.order(Effect{Kind: Grant, ID: q.ID, Leases: q.leases})
	if q.wanted {
		p.order(Effect{Kind: RequestRevoke, ID: q.ID})
	}
}

// ask has those next in line ask for their leases, as far as is allowed.
func (p *State) ask() {
	for p.permits >= 0 && len(p.next) > 0 {
		q := p.next[0]
		if q.MultiLock {
			p.dropNext(0)
			p.order(Effect{Kind: ReportTurn, ID: q.ID})
			continue
		}
		if len(p.asked) > 0 && p.lacking+q.Permits > max(p.permits, lookAhead) {
			p.refuseTries()
			return
		}
		p.dropNext(0)
		p.asked = append(p.asked, q)
		p.askLeases(q)
	}
}

func (p *State) askLeases(q *party) {
	q.leases = make([]Lease, q.Permits)
	q.lacks = q.Permits
	p.lacking += q.lacks
	for i := range q.leases {
		p.serials++
		q.leases[i].Serial = p.serials
		p.leases[p.serials] = q
		p.order(Effect{Kind: AcquireLease, ID: q.ID, Serial: p.serials, Try: q.Try, Data: q.Data, Revocable: q.Revocable})
	}
}

// Proceed has a Joint request ask for its leases after DoPass. Proceed ignores a request
// that has ended.
func (p *State) Proceed(id requests.ID) {
	if q := p.parties[id]; q != nil && q.MultiLock && q.past && len(q.leases) == 0 {
		p.askLeases(q)
	}
}

// refuseTries refuses those that would have to wait before they can even ask. That
// happens only if the number of permits was not known when they came, or was greater.
func (p *State) refuseTries() {
	for i := 0; p.tries > 0; {
		if q := p.next[i]; q.Try {
			p.refuse(q, requests.NotAcquired)
		} else {
			i++
		}
	}
}

// back has a request give up its leases and ask again, behind those that have asked.
func (p *State) back(q *party) {
	p.leaveLeases(q)
	p.next = slices.Insert(p.next, 0, q)
	if q.Try {
		p.tries++
	}
}

// by is who made the request serial, if that is still known.
func (p *State) by(serial uint64) *party {
	if q := p.gates[serial]; q != nil {
		return q
	}
	return p.leases[serial]
}

// Refused: the request serial failed, or what it was granted could not be released.
func (p *State) Refused(serial uint64, why requests.Reason) {
	switch q := p.by(serial); {
	case q == nil:
	case q.released:
		p.returned(q, serial, why)
	default:
		delete(p.gates, serial)
		delete(p.leases, serial)
		p.refuse(q, why)
		p.ask()
	}
}

// Lost: what the request serial was granted is lost. A request that waits begins anew,
// or is refused if it is Joint.
func (p *State) Lost(serial uint64, why requests.Reason) {
	switch q := p.by(serial); {
	case q == nil:
	case q.released:
		p.returned(q, serial, why)
	case q.held:
		p.end(q)
		p.order(Effect{Kind: Lose, ID: q.ID, Reason: why})
	case q.MultiLock:
		p.refuse(q, why)
		p.ask()
	default:
		p.leave(q)
		p.enter(q)
		p.ask()
	}
}

// Released: the lease of the request serial is gone.
func (p *State) Released(serial uint64) {
	if q := p.leases[serial]; q != nil && q.released {
		p.returned(q, serial, 0)
	}
}

func (p *State) returned(q *party, serial uint64, why requests.Reason) {
	delete(p.leases, serial)
	if q.why == 0 {
		q.why = why
	}
	if q.returns--; q.returns > 0 {
		return
	}
	delete(p.parties, q.ID)
	if q.why != 0 {
		p.order(Effect{Kind: Refuse, ID: q.ID, Reason: q.why})
	} else {
		p.order(Effect{Kind: ConfirmRelease, ID: q.ID})
	}
}

// leave leaves all that a request has below.
func (p *State) leave(q *party) {
	if i := slices.Index(p.next, q); q.past && i >= 0 {
		p.dropNext(i)
	}
	p.leaveLeases(q)
	p.leaveGate(q)
	q.past = false
}

func (p *State) leaveGate(q *party) {
	if p.gates[q.gate] == q {
		delete(p.gates, q.gate)
		p.order(Effect{Kind: LeaveRequestQueue, Serial: q.gate})
	}
	q.gate = 0
}

func (p *State) leaveLeases(q *party) {
	if i := slices.Index(p.asked, q); q.past && i >= 0 {
		p.asked = slices.Delete(p.asked, i, i+1)
	}
	for _, l := range q.leases {
		if p.leases[l.Serial] == q {
			delete(p.leases, l.Serial)
			p.order(Effect{Kind: WithdrawLease, Serial: l.Serial})
		}
	}
	p.lacking -= q.lacks
	q.leases, q.lacks = nil, 0
}

func (p *State) dropNext(i int) {
	q := p.next[i]
	if q.Try {
		p.tries--
	}
	if i == 0 {
		p.next[0] = nil
		p.next = p.next[1:]
		return
	}
	p.next = slices.Delete(p.next, i, i+1)
}
