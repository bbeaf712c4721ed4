package semaphore

import "github.com/actorlock/actorlock/actors/internal/requests"

// State holds the requests of one process for the permits of a semaphore. It is used by one
// goroutine at a time; the package's documentation says how it works.
type State struct {
	requests.EffectList
	permits    int // less than 0 until Resize says it
	fixed      bool
	lastNumber uint32 // of a request to the locks below

	requests requests.Table[permitRequest] // by the ID that the owner's request has
	owners   map[string]int                // permits that an owner with a name holds or waits for
	used     int                           // permits of all requests that are not released
	below    requests.Table[permitRequest] // of the requests to the locks below that have not ended; those that are withdrawn, too

	asked   requests.List[permitRequest] // have asked for leases and lack some, in their order
	next    requests.List[permitRequest] // have passed the request queue, behind those that have asked
	tries   int                          // how many of next are tries
	missing int                          // leases that were asked for and are not granted
}

// lookAhead is how many leases may be asked for ahead of time, if permits are fewer. With 8, 30 clients
// of 3 permits make a fifth less acquires; with 32 they make no more.
const lookAhead = 16

// permitRequest is an open request. Until its leases are held it is in the request queue: queueID is
// not 0.
type permitRequest struct {
	requests.Incoming
	queueID     requests.ID                     // of its request to the request queue; 0: it has left
	passedQueue bool                            // it has passed the request queue and is not held: it is in next, or in asked once leases are asked for
	place       requests.Element[permitRequest] // in next or in asked
	leases      requests.Parts[requests.Effect] // the Grants of its leases, which are asked for all at once
	leaseIDs    []requests.ID                   // of the requests for them; empty while none are asked for
}

// New returns the State of a semaphore without requests. permits less than 0 are not known yet:
// Resize says them. fixed says that their number does not change.
func New(permits int, fixed bool) *State {
	return &State{permits: permits, fixed: fixed}
}

// Idle reports whether no request is open.
func (p *State) Idle() bool { return p.requests.Len() == 0 }

// Acquire takes in a new request. Requests of one owner do not enter again: they add up. Acquire
// refuses a request with WouldDeadlock if its owner could have the permits only after its own
// release, unless the number of permits may change.
func (p *State) Acquire(e requests.Incoming) {
	switch {
	case p.fixed && e.Owner != "" && p.owners[e.Owner]+e.Permits > p.permits:
		p.Refuse(e.ID, requests.WouldDeadlock)
	case e.Try && p.permits >= 0 && p.used+e.Permits > p.permits:
		p.Refuse(e.ID, requests.NotAcquired)
	default:
		q := &permitRequest{Incoming: e}
		p.requests.Put(e.ID, q)
		p.count(q, e.Permits)
		p.enterQueue(q)
	}
}

// Cancel withdraws a request, because of why. It releases a grant, too.
func (p *State) Cancel(id requests.ID, why requests.Reason) {
	if q := p.requests.At(id); q != nil && q.leases.Stage() != requests.Releasing {
		p.refuse(q, why)
		p.advance()
	}
}

// Release releases a grant.
func (p *State) Release(id requests.ID) {
	q := p.requests.At(id)
	if q == nil || q.leases.Stage() != requests.Held {
		p.Refuse(id, requests.NotHeld)
		return
	}
	q.leases.Release()
	p.count(q, -q.Permits)
	for _, id := range q.leaseIDs {
		p.Add(requests.Release, id).Below = leasesBelow
	}
}

// IDsBelow returns the IDs of an open request's requests to the request queue and for leases.
func (p *State) IDsBelow(id requests.ID) (queue requests.ID, leases []requests.ID) {
	if q := p.requests.At(id); q != nil {
		return q.queueID, q.leaseIDs
	}
	return 0, nil
}

// Has reports whether an owner holds permits or waits for some. An owner without a name
// has none.
func (p *State) Has(owner string) bool { return p.owners[owner] > 0 }

// Sized reports whether the number of permits is known.
func (p *State) Sized() bool { return p.permits >= 0 }

// Resize sets the number of permits. It ends no grant.
func (p *State) Resize(permits int) {
	p.permits = permits
	p.advance()
}

func (p *State) count(q *permitRequest, permits int) {
	p.used += permits
	if q.Owner != "" {
		if p.owners == nil {
			p.owners = map[string]int{}
		}
		if p.owners[q.Owner] += permits; p.owners[q.Owner] == 0 {
			delete(p.owners, q.Owner)
		}
	}
}

// refuse ends a request that is not released, and says why.
func (p *State) refuse(q *permitRequest, why requests.Reason) {
	p.end(q)
	p.Refuse(q.ID, why)
}

// end forgets a request that is not released, and leaves what it has of the locks below.
func (p *State) end(q *permitRequest) {
	p.withdraw(q)
	p.requests.Remove(q.ID)
	p.count(q, -q.Permits)
}

// ReleaseMemory frees what is not in use.
func (p *State) ReleaseMemory() {
	p.EffectList, p.below, p.requests, p.owners = requests.EffectList{}, requests.Table[permitRequest]{}, requests.Table[permitRequest]{}, nil
}

// The locks below, by the numbers that effects have.
const (
	queueBelow = iota
	leasesBelow
)
