package semaphore

import "github.com/actorlock/actorlock/actors/internal/requests"

// How requests pass the request queue and get their leases.

func (p *State) enterQueue(q *permitRequest) {
	p.lastSerial++
	q.queueSerial = p.lastSerial
	p.below[q.queueSerial] = q
	p.actor.EnterRequestQueue(q.queueSerial, q.Incoming)
}

// Granted notes that the request l.Serial has passed the request queue or has its lease. It ignores
// a request that was withdrawn: its release is already sent.
func (p *State) Granted(l Lease) {
	q := p.below[l.Serial]
	if q == nil {
		return
	}
	if l.Serial == q.queueSerial {
		q.passedQueue = true
		p.next.Append(q, &q.place)
		if q.Try {
			p.tries++
		}
		p.advance()
		return
	}
	p.missing--
	all := q.leases.Granted(int(l.Serial-q.serials[0]), l)
	switch {
	case !q.MultiLock && q != p.asked.First():
		p.requeue(q)
	case all != nil:
		p.grant(q, all)
	}
	p.advance()
}

func (p *State) grant(q *permitRequest, leases []Lease) {
	q.place.Leave()
	q.passedQueue = false
	p.leaveQueue(q)
	p.actor.GrantLeases(q.ID, leases)
	if q.leases.Revoked() {
		p.actor.RequestRevoke(q.ID)
	}
}

// advance has the next requests ask for their leases, up to lookAhead.
func (p *State) advance() {
	for p.permits >= 0 && p.next.First() != nil {
		q := p.next.First()
		if q.MultiLock {
			p.leaveNext(q)
			p.actor.ReportTurn(q.ID)
			continue
		}
		if p.asked.First() != nil && p.missing+q.Permits > max(p.permits, lookAhead) {
			p.refuseTries()
			return
		}
		p.leaveNext(q)
		p.asked.Append(q, &q.place)
		p.acquireLeases(q)
	}
}

func (p *State) acquireLeases(q *permitRequest) {
	q.leases.Acquire(q.Permits)
	p.missing += q.Permits
	for range q.Permits {
		p.lastSerial++
		p.below[p.lastSerial] = q
		q.serials = append(q.serials, p.lastSerial)
	}
	p.actor.AcquireLeases(q.Incoming, q.serials)
}

// Proceed has a request of a multi-lock ask for its leases after ReportTurn. It ignores a request
// that has ended.
func (p *State) Proceed(id requests.ID) {
	if q := p.requests[id]; q != nil && q.MultiLock && q.passedQueue && q.leases.Stage() == requests.Unasked {
		p.acquireLeases(q)
	}
}

// refuseTries refuses the tries that would have to wait before they can even ask. There are such
// only if the number of permits was not known when they came, or was greater.
func (p *State) refuseTries() {
	if p.tries == 0 {
		return
	}
	for q := range p.next.All() {
		if q.Try {
			p.refuse(q, requests.NotAcquired)
		}
	}
}

// requeue has a request give up its leases and ask again, behind those that have asked.
func (p *State) requeue(q *permitRequest) {
	p.withdrawLeases(q)
	p.next.Prepend(q, &q.place)
	if q.Try {
		p.tries++
	}
}

// Refused notes that the request serial failed, or that what it was granted could not be released.
func (p *State) Refused(serial uint64, why requests.Reason) {
	switch q := p.below[serial]; {
	case q == nil:
	case q.leases.Stage() == requests.Releasing:
		p.leaseReleased(q, serial, why)
	default:
		delete(p.below, serial)
		p.refuse(q, why)
		p.advance()
	}
}

// Lost notes that what the request serial was granted is lost. A waiting request begins anew; one
// of a multi-lock is refused.
func (p *State) Lost(serial uint64, why requests.Reason) {
	q := p.below[serial]
	if q == nil {
		return
	}
	switch stage := q.leases.PartLost(why); {
	case stage == requests.Releasing: // Released or Refused follows
	case stage == requests.Held:
		p.actor.Lose(q.ID, why)
		p.end(q)
	case q.MultiLock:
		p.refuse(q, why)
		p.advance()
	default:
		p.withdraw(q)
		p.enterQueue(q)
		p.advance()
	}
}

// Released notes that the lease of the request serial is gone.
func (p *State) Released(serial uint64) {
	if q := p.below[serial]; q != nil && q.leases.Stage() == requests.Releasing {
		p.leaseReleased(q, serial, 0)
	}
}

func (p *State) leaseReleased(q *permitRequest, serial uint64, why requests.Reason) {
	delete(p.below, serial)
	if !q.leases.ReleaseAnswered(why) {
		return
	}
	delete(p.requests, q.ID)
	if why := q.leases.Reason(); why != 0 {
		p.actor.RefuseRequest(q.ID, why)
	} else {
		p.actor.ConfirmRelease(q.ID, 0)
	}
}

// withdraw leaves all that a request has of the locks below.
func (p *State) withdraw(q *permitRequest) {
	if q.passedQueue && q.leases.Stage() == requests.Unasked {
		p.leaveNext(q)
	}
	p.withdrawLeases(q)
	p.leaveQueue(q)
	q.passedQueue = false
}

func (p *State) leaveQueue(q *permitRequest) {
	if p.below[q.queueSerial] == q {
		delete(p.below, q.queueSerial)
		p.actor.LeaveRequestQueue(q.queueSerial)
	}
	q.queueSerial = 0
}

func (p *State) withdrawLeases(q *permitRequest) {
	q.place.Leave()
	for _, serial := range q.serials {
		if p.below[serial] == q {
			delete(p.below, serial)
			p.actor.WithdrawLease(serial)
		}
	}
	p.missing -= q.leases.Missing()
	q.leases, q.serials = requests.Parts[Lease]{}, nil
}

// leaveNext takes a request out of next, if it is there.
func (p *State) leaveNext(q *permitRequest) {
	if q.place.Leave() && q.Try {
		p.tries--
	}
}
