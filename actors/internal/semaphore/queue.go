package semaphore

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// How requests pass the request queue and get their leases.

func (p *State) enterQueue(q *permitRequest) {
	q.queueID = p.newBelow(q)
	f := p.Add(requests.Acquire, q.queueID)
	f.Below, f.By = queueBelow, q.ID
	f.Request = &requests.Incoming{ID: q.queueID, Kind: queue.ProcessExclusive, Permits: 1, Try: q.Try}
}

// newBelow returns the ID for a further request of q to a lock below.
func (p *State) newBelow(q *permitRequest) requests.ID {
	p.lastNumber++
	return p.below.Add(p.lastNumber, q)
}

// Answered takes in news of a request from a lock below.
func (p *State) Answered(news requests.Effect) {
	q := p.below.At(news.ID)
	if q == nil {
		return
	}
	ended := news.Kind == requests.Refuse || news.Kind == requests.Lose || news.Kind == requests.ConfirmRelease
	if ended {
		p.below.Remove(news.ID)
	}
	switch i := q.leaseOf(news.ID); {
	case i < 0 && news.ID != q.queueID: // it is withdrawn
	case ended:
		p.endedBelow(q, news)
	case news.Kind == requests.RequestRevoke:
		if i >= 0 && q.leases.Revoke() {
			p.Add(requests.RequestRevoke, q.ID)
		}
	case news.Kind != requests.Grant:
	case i < 0:
		p.passed(q)
	default:
		p.leaseGranted(q, i, news)
	}
	p.advance()
}

// passed notes that a request has passed the request queue.
func (p *State) passed(q *permitRequest) {
	q.passedQueue = true
	p.next.Append(q, &q.place)
	if q.Try {
		p.tries++
	}
}

func (p *State) leaseGranted(q *permitRequest, i int, lease requests.Effect) {
	p.missing--
	all := q.leases.Granted(i, lease)
	switch {
	case !q.Atomic && q != p.asked.First():
		p.requeue(q)
	case all != nil:
		p.grant(q, all)
	}
}

func (p *State) grant(q *permitRequest, leases []requests.Effect) {
	q.place.Leave()
	q.passedQueue = false
	p.leaveQueue(q)
	for _, l := range leases {
		f := p.Add(requests.NoteNode, l.ID)
		f.Node, f.Token = l.Node, l.Token
	}
	p.Add(requests.Grant, q.ID)
	if q.leases.Revoked() {
		p.Add(requests.RequestRevoke, q.ID)
	}
}

// advance has the next requests ask for their leases, up to lookAhead.
func (p *State) advance() {
	for p.permits >= 0 && p.next.First() != nil {
		q := p.next.First()
		if q.Atomic {
			p.leaveList(q)
			p.Add(requests.ReportTurn, q.ID)
			continue
		}
		if p.asked.First() != nil && p.missing+q.Permits > max(p.permits, lookAhead) {
			p.refuseTries()
			return
		}
		p.leaveList(q)
		p.asked.Append(q, &q.place)
		p.acquireLeases(q)
	}
}

func (p *State) acquireLeases(q *permitRequest) {
	q.leases.Acquire(q.Permits)
	p.missing += q.Permits
	for i := range q.Permits {
		id := p.newBelow(q)
		q.leaseIDs = append(q.leaseIDs, id)
		f := p.Add(requests.Acquire, id)
		f.Below, f.By, f.More = leasesBelow, q.ID, i < q.Permits-1
		f.Request = &requests.Incoming{ID: id, Permits: 1, Try: q.Try, Revocable: q.Revocable, Data: q.Data}
	}
}

// Proceed has a request of a multi-lock ask for its leases after ReportTurn. It ignores a request
// that has ended.
func (p *State) Proceed(id requests.ID) {
	if q := p.requests.At(id); q != nil && q.Atomic && q.passedQueue && q.leases.Stage() == requests.Unasked {
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

// requeue has a request give up its leases and ask again, at its place among those that have asked.
func (p *State) requeue(q *permitRequest) {
	p.withdrawLeases(q)
	p.acquireLeases(q)
}

// endedBelow goes on after the end of one of a request's requests below. A waiting request begins
// anew if it has lost what it was granted there; one of a multi-lock is refused.
func (p *State) endedBelow(q *permitRequest, news requests.Effect) {
	switch stage := q.leases.Stage(); {
	case stage == requests.Releasing:
		p.leaseReleased(q, news.Reason)
	case news.Kind == requests.Lose && stage == requests.Held:
		p.Add(requests.Lose, q.ID).Reason = news.Reason
		p.end(q)
	case news.Kind == requests.Lose && !q.Atomic:
		p.withdraw(q)
		p.enterQueue(q)
	default:
		p.refuse(q, news.Reason)
	}
}

func (p *State) leaseReleased(q *permitRequest, why requests.Reason) {
	if !q.leases.ReleaseAnswered(why) {
		return
	}
	p.requests.Remove(q.ID)
	if why := q.leases.Reason(); why != 0 {
		p.Refuse(q.ID, why)
	} else {
		p.Add(requests.ConfirmRelease, q.ID)
	}
}

// withdraw leaves all that a request has of the locks below.
func (p *State) withdraw(q *permitRequest) {
	p.leaveList(q)
	p.withdrawLeases(q)
	p.leaveQueue(q)
	q.passedQueue = false
}

func (p *State) leaveQueue(q *permitRequest) {
	p.cancelBelow(queueBelow, q.queueID)
	q.queueID = 0
}

func (p *State) withdrawLeases(q *permitRequest) {
	for _, id := range q.leaseIDs {
		p.cancelBelow(leasesBelow, id)
	}
	p.missing -= q.leases.Missing()
	q.leases, q.leaseIDs = requests.Parts[requests.Effect]{}, nil
}

// cancelBelow withdraws a request to a lock below unless it has ended. Its end is still to come.
func (p *State) cancelBelow(below uint8, id requests.ID) {
	if p.below.At(id) != nil {
		p.Add(requests.Cancel, id).Below = below
	}
}

// leaseOf returns which of its leases a request asks for by the request below, or -1. The numbers in
// the IDs follow each other.
func (q *permitRequest) leaseOf(id requests.ID) int {
	if len(q.leaseIDs) > 0 {
		if i := uint32(id>>32) - uint32(q.leaseIDs[0]>>32); uint64(i) < uint64(len(q.leaseIDs)) {
			return int(i)
		}
	}
	return -1
}

// leaveList takes a request out of next or asked, if it is there.
func (p *State) leaveList(q *permitRequest) {
	if q.place.Leave() && q.Try && q.leases.Stage() == requests.Unasked { // of next
		p.tries--
	}
}
