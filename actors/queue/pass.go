package queue

import "slices"

// How a Pool's requests pass the gate and come by their leases.

func (p *Pool) enter(q *party) {
	p.serials++
	q.gate = p.serials
	p.gates[q.gate] = q
	p.order(Order{Do: DoAskGate, Serial: q.gate, Try: q.Try})
}

// Granted: the request serial is past the gate, or has its lease. Granted ignores requests
// that were left: they are on their way back.
func (p *Pool) Granted(l Lease) {
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
	case !q.Joint && q != p.asked[0]:
		p.back(q)
	case q.lacks == 0:
		p.grant(q)
	}
	p.ask()
}

func (p *Pool) grant(q *party) {
	if !q.Joint {
		p.asked[0] = nil
		p.asked = p.asked[1:]
	}
	q.held, q.past = true, false
	p.leaveGate(q)
	p.order(Order{Do: DoGrant, ID: q.ID, Leases: q.leases})
	if q.wanted {
		p.order(Order{Do: DoRevoke, ID: q.ID})
	}
}

// ask has those next in line ask for their leases, as far as is allowed.
func (p *Pool) ask() {
	for p.permits >= 0 && len(p.next) > 0 {
		q := p.next[0]
		if q.Joint {
			p.dropNext(0)
			p.order(Order{Do: DoPass, ID: q.ID})
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

func (p *Pool) askLeases(q *party) {
	q.leases = make([]Lease, q.Permits)
	q.lacks = q.Permits
	p.lacking += q.lacks
	for i := range q.leases {
		p.serials++
		q.leases[i].Serial = p.serials
		p.leases[p.serials] = q
		p.order(Order{Do: DoAskLease, ID: q.ID, Serial: p.serials, Try: q.Try, Data: q.Data, Revocable: q.Revocable})
	}
}

// Proceed has a Joint request ask for its leases after DoPass. Proceed ignores a request
// that has ended.
func (p *Pool) Proceed(id ID) {
	if q := p.parties[id]; q != nil && q.Joint && q.past && len(q.leases) == 0 {
		p.askLeases(q)
	}
}

// refuseTries refuses those that would have to wait before they can even ask. That
// happens only if the number of permits was not known when they came, or was greater.
func (p *Pool) refuseTries() {
	for i := 0; p.tries > 0; {
		if q := p.next[i]; q.Try {
			p.refuse(q, NotAcquired)
		} else {
			i++
		}
	}
}

// back has a request give up its leases and ask again, behind those that have asked.
func (p *Pool) back(q *party) {
	p.leaveLeases(q)
	p.next = slices.Insert(p.next, 0, q)
	if q.Try {
		p.tries++
	}
}

// by is who made the request serial, if that is still known.
func (p *Pool) by(serial uint64) *party {
	if q := p.gates[serial]; q != nil {
		return q
	}
	return p.leases[serial]
}

// Refused: the request serial failed, or what it was granted could not be released.
func (p *Pool) Refused(serial uint64, why Why) {
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
func (p *Pool) Lost(serial uint64, why Why) {
	switch q := p.by(serial); {
	case q == nil:
	case q.released:
		p.returned(q, serial, why)
	case q.held:
		p.end(q)
		p.order(Order{Do: DoLose, ID: q.ID, Why: why})
	case q.Joint:
		p.refuse(q, why)
		p.ask()
	default:
		p.leave(q)
		p.enter(q)
		p.ask()
	}
}

// Released: the lease of the request serial is gone.
func (p *Pool) Released(serial uint64) {
	if q := p.leases[serial]; q != nil && q.released {
		p.returned(q, serial, 0)
	}
}

func (p *Pool) returned(q *party, serial uint64, why Why) {
	delete(p.leases, serial)
	if q.why == 0 {
		q.why = why
	}
	if q.returns--; q.returns > 0 {
		return
	}
	delete(p.parties, q.ID)
	if q.why != 0 {
		p.order(Order{Do: DoRefuse, ID: q.ID, Why: q.why})
	} else {
		p.order(Order{Do: DoReleased, ID: q.ID})
	}
}

// leave leaves all that a request has below.
func (p *Pool) leave(q *party) {
	if i := slices.Index(p.next, q); q.past && i >= 0 {
		p.dropNext(i)
	}
	p.leaveLeases(q)
	p.leaveGate(q)
	q.past = false
}

func (p *Pool) leaveGate(q *party) {
	if p.gates[q.gate] == q {
		delete(p.gates, q.gate)
		p.order(Order{Do: DoLeaveGate, Serial: q.gate})
	}
	q.gate = 0
}

func (p *Pool) leaveLeases(q *party) {
	if i := slices.Index(p.asked, q); q.past && i >= 0 {
		p.asked = slices.Delete(p.asked, i, i+1)
	}
	for _, l := range q.leases {
		if p.leases[l.Serial] == q {
			delete(p.leases, l.Serial)
			p.order(Order{Do: DoLeaveLease, Serial: l.Serial})
		}
	}
	p.lacking -= q.lacks
	q.leases, q.lacks = nil, 0
}

func (p *Pool) dropNext(i int) {
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
