package semaphore

import "github.com/actorlock/actorlock/actors/internal/requests"

// State holds the requests of one process for the permits of a semaphore. It is used by one
// goroutine at a time; the package's documentation says how it works.
type State struct {
	actor      PermitActor
	permits    int // less than 0 until Resize says it
	fixed      bool
	lastSerial uint64 // of a request to the locks below

	requests map[requests.ID]*permitRequest
	owners   map[string]int            // permits that an owner with a name holds or waits for
	used     int                       // permits of all requests that are not released
	below    map[uint64]*permitRequest // by serial: the request that has it of a lock below, asked for, granted or being released

	asked   requests.Line[permitRequest] // have asked for leases and lack some, in their order
	next    requests.Line[permitRequest] // have passed the request queue, behind those that have asked
	tries   int                          // how many of next are tries
	missing int                          // leases that were asked for and are not granted
}

// lookAhead is how many leases may be asked for ahead of time, if permits are fewer.
const lookAhead = 8

// permitRequest is an open request. Until its leases are held it is in the request queue: queueSerial
// is not 0.
type permitRequest struct {
	requests.Incoming
	queueSerial uint64                        // of its request to the request queue; 0: it has left
	passedQueue bool                          // it has passed the request queue and is not held: it is in next, or in asked once leases are asked for
	place       requests.Place[permitRequest] // in next or in asked
	leases      requests.Parts[Lease]         // asked for all at once
	serials     []uint64                      // of leases, one after the other; empty while none are asked for
}

// New returns the State of a semaphore without requests. permits less than 0 are not known yet:
// Resize says them. fixed says that their number does not change.
func New(actor PermitActor, permits int, fixed bool) *State {
	return &State{
		actor: actor, permits: permits, fixed: fixed,
		requests: map[requests.ID]*permitRequest{},
		owners:   map[string]int{},
		below:    map[uint64]*permitRequest{},
	}
}

// Idle reports whether no request is open.
func (p *State) Idle() bool { return len(p.requests) == 0 }

// Acquire takes in a new request. Requests of one owner do not enter again: they add up. Acquire
// refuses a request with WouldDeadlock if its owner could have the permits only after its own
// release, unless the number of permits may change.
func (p *State) Acquire(e requests.Incoming) {
	switch {
	case p.fixed && e.Owner != "" && p.owners[e.Owner]+e.Permits > p.permits:
		p.actor.RefuseRequest(e.ID, requests.WouldDeadlock)
	case e.Try && p.permits >= 0 && p.used+e.Permits > p.permits:
		p.actor.RefuseRequest(e.ID, requests.NotAcquired)
	default:
		q := &permitRequest{Incoming: e}
		p.requests[e.ID] = q
		p.count(q, e.Permits)
		p.enterQueue(q)
	}
}

// Revoke notes that another client asks for the lease of the request serial.
func (p *State) Revoke(serial uint64) {
	q := p.below[serial]
	if q != nil && serial != q.queueSerial && q.leases.Revoke() {
		p.actor.RequestRevoke(q.ID)
	}
}

// Cancel withdraws a request, because of why. It releases a grant, too.
func (p *State) Cancel(id requests.ID, why requests.Reason) {
	if q := p.requests[id]; q != nil && q.leases.Stage() != requests.Releasing {
		p.refuse(q, why)
		p.advance()
	}
}

// Release releases a grant.
func (p *State) Release(id requests.ID) {
	q := p.requests[id]
	if q == nil || q.leases.Stage() != requests.Held {
		p.actor.RefuseRequest(id, requests.NotHeld)
		return
	}
	q.leases.Release()
	p.count(q, -q.Permits)
	for _, serial := range q.serials {
		p.actor.ReleaseLease(serial)
	}
}

// SerialsOf returns the serials of an open request, to the request queue and of its leases.
func (p *State) SerialsOf(id requests.ID) (queue uint64, leases []uint64) {
	if q := p.requests[id]; q != nil {
		return q.queueSerial, q.serials
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
		if p.owners[q.Owner] += permits; p.owners[q.Owner] == 0 {
			delete(p.owners, q.Owner)
		}
	}
}

// refuse ends a request that is not released, and says why.
func (p *State) refuse(q *permitRequest, why requests.Reason) {
	p.end(q)
	p.actor.RefuseRequest(q.ID, why)
}

// end forgets a request that is not released, and leaves what it has of the locks below.
func (p *State) end(q *permitRequest) {
	p.withdraw(q)
	delete(p.requests, q.ID)
	p.count(q, -q.Permits)
}

// PermitActor performs what a State asks for. The first five methods are about the locks below, in
// which a State has requests by serials of its own; the others are for the owners.
type PermitActor interface {
	// EnterRequestQueue acquires the request queue for r. The State's Granted, Refused and Lost
	// must be called.
	EnterRequestQueue(serial uint64, r requests.Incoming)
	// LeaveRequestQueue withdraws the request, or releases what it was granted.
	LeaveRequestQueue(serial uint64)
	// AcquireLeases acquires a lease for each serial. One transaction is to make all leases of a
	// request, if they fit into one. The State's Granted, Refused and Lost must be
	// called.
	AcquireLeases(r requests.Incoming, serials []uint64)
	// WithdrawLease withdraws the request, or releases the lease. No answer is awaited.
	WithdrawLease(serial uint64)
	// ReleaseLease releases the lease. The State's Released or Refused must be called, also after a
	// Lost that has crossed the release.
	ReleaseLease(serial uint64)
	// ReportTurn: the request, of a multi-lock, has passed the request queue. The State's Proceed
	// must be called once the multi-lock has passed the request queues of all its semaphores.
	ReportTurn(id requests.ID)
	// GrantLeases: the request holds its leases.
	GrantLeases(id requests.ID, leases []Lease)
	requests.Owners
}

// Lease is the grant of one permit. Serial is the serial of the request for it.
type Lease struct {
	Serial uint64
	Node   string
	Token  requests.Token
}
