package semaphore

import (
	"maps"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// Pool is what one process wants of a semaphore: requests for some of its permits
// each. It builds upon two locks, which it asks one after the other.
//
// The gate, with the rule Gate, is a queue of requests, one node each: the turn is
// decided there. The leases, with the rule Leases, are one node for each permit in use.
// Only who is past the gate may ask for leases. A request asks for all of its leases
// at once and leaves the gate when it has them. So of all processes only one at a time
// can have some of its leases and lack others, and no two can wait for each other.
//
// Requests of this process that stand at the gate one behind the other pass it
// together. They ask for their leases one behind the other; one that is given leases
// before its turn, because nodes were deleted and made again, gives them back.
//
// Leases are asked for before there is room. Curator does so, too, with the request
// that is first: it then holds as soon as there is room, and not a round trip later.
// Here the requests behind it do so as well, for as many leases as the semaphore has
// and lookAhead at least: more are not needed to be given what is released within a
// round trip, and each is a child of the leases that is no holder. (To others that
// makes no difference. They look at the leases only past the gate, where nobody is
// before all of those hold.)
//
// A Joint request is the part of a multi-lock. It stops past the gate until the multi-lock
// is past the gates of all its semaphores and says Proceed: then one transaction makes the
// leases of all semaphores and the nodes of all other members. Its leases are made at once
// and are granted in the order of the queue, so it keeps to no order of the Pool's own. If
// one of its nodes is lost before the grant, it is refused: the whole multi-lock must
// begin anew, not one of its parts.
type State struct {
	permits    int // less than 0: not known yet
	fixed      bool
	closed     requests.Reason
	lastSerial uint64 // of requests to gate and leases

	requests map[requests.ID]*request
	owners   map[string]int      // permits that an owner holds or waits for
	used     int                 // the same, of all
	queued   map[uint64]*request // by serial of their request
	leases   map[uint64]*request

	asked   []*request // past the gate, for leases; in their order
	next    []*request // past the gate, behind those
	tries   int        // how many of next are tries
	missing int        // how many leases were asked for and not given

	out []Effect
}

// lookAhead is how many leases may be asked for beforehand whatever the permits.
const lookAhead = 8

// party is a request and what it has below.
type request struct {
	Acquire
	queueSerial uint64  // serial of its request; 0: none
	passedQueue bool    // the gate
	leases      []Lease // asked for
	missing     int     // how many of them are not given
	held        bool
	released    bool
	revoked     bool            // somebody asks for one of its leases
	releasing   int             // of its leases are not confirmed
	reason      requests.Reason // they could not be released
}

// NewPool is the Pool of a semaphore that nobody here has asked for yet. Less than 0
// permits are not known yet: Resize will tell. fixed says that their number does not
// change.
func New(permits int, fixed bool) *State {
	return &State{
		permits: permits, fixed: fixed,
		requests: map[requests.ID]*request{},
		owners:   map[string]int{},
		queued:   map[uint64]*request{},
		leases:   map[uint64]*request{},
	}
}

// Orders gives what is to be done since it was asked last, in order. The slice is good
// until something else is said to the Pool.
func (p *State) Effects() []Effect {
	invariants.Check(p)
	out := p.out
	p.out = p.out[:0]
	return out
}

// Idle tells that nobody here wants anything.
func (p *State) Idle() bool { return len(p.requests) == 0 }

// Acquire: somebody wants permits. An owner that could have them only after its own
// release is refused because of Deadlock, unless the semaphore may grow.
func (p *State) Acquire(e Acquire) {
	switch {
	case p.closed != 0:
		p.effect(Effect{Kind: Refuse, ID: e.ID, Reason: p.closed})
	case p.fixed && e.Owner != "" && p.owners[e.Owner]+e.Permits > p.permits:
		p.effect(Effect{Kind: Refuse, ID: e.ID, Reason: requests.WouldDeadlock})
	case e.Try && p.permits >= 0 && p.used+e.Permits > p.permits:
		p.effect(Effect{Kind: Refuse, ID: e.ID, Reason: requests.NotAcquired})
	default:
		q := &request{Acquire: e}
		p.requests[e.ID] = q
		p.count(q, e.Permits)
		p.enterQueue(q)
	}
}

// Revoke: somebody asks for the lease that was asked for by the request serial.
func (p *State) Revoke(serial uint64) {
	q := p.leases[serial]
	if q == nil {
		return
	}
	q.revoked = true
	if q.held && !q.released {
		p.effect(Effect{Kind: RequestRevoke, ID: q.ID})
	}
}

// Cancel withdraws a request, for the reason why. A grant is given back.
func (p *State) Cancel(id requests.ID, why requests.Reason) {
	if q := p.requests[id]; q != nil && !q.released {
		p.refuse(q, why)
		p.advance()
	}
}

// Release gives a grant back.
func (p *State) Release(id requests.ID) {
	q := p.requests[id]
	if q == nil || !q.held || q.released {
		p.effect(Effect{Kind: Refuse, ID: id, Reason: requests.NotHeld})
		return
	}
	q.released, q.releasing = true, len(q.leases)
	p.count(q, -q.Permits)
	for _, l := range q.leases {
		p.effect(Effect{Kind: ReleaseLease, Serial: l.Serial})
	}
}

// Has reports whether an owner holds permits or waits for some. An owner without a name
// has none.
func (p *State) Has(owner string) bool { return p.owners[owner] > 0 }

// Sized tells that the number of permits is known.
func (p *State) Sized() bool { return p.permits >= 0 }

// Resize says how many permits there are. Who holds goes on to.
func (p *State) Resize(permits int) {
	p.permits = permits
	p.advance()
}

// Close refuses all requests and ends all grants, because of why, and leaves the locks below.
func (p *State) Close(why requests.Reason) {
	parties := p.requests
	p.closed = why
	p.Leave()
	for _, id := range slices.Sorted(maps.Keys(parties)) {
		if q := parties[id]; q.held && !q.released {
			p.effect(Effect{Kind: Lose, ID: id, Reason: why})
		} else {
			p.effect(Effect{Kind: Refuse, ID: id, Reason: why})
		}
	}
}

// Leave leaves the locks below and forgets all requests, without an answer to their owners: the
// actor has answered them after a failure.
func (p *State) Leave() {
	for _, serial := range slices.Sorted(maps.Keys(p.queued)) {
		p.effect(Effect{Kind: LeaveRequestQueue, Serial: serial})
	}
	for _, serial := range slices.Sorted(maps.Keys(p.leases)) {
		p.effect(Effect{Kind: WithdrawLease, Serial: serial})
	}
	clear(p.queued)
	clear(p.leases)
	clear(p.owners)
	p.requests, p.asked, p.next = map[requests.ID]*request{}, nil, nil
	p.used, p.tries, p.missing = 0, 0, 0
}

func (p *State) effect(o Effect) { p.out = append(p.out, o) }

func (p *State) count(q *request, permits int) {
	p.used += permits
	if q.Owner != "" {
		if p.owners[q.Owner] += permits; p.owners[q.Owner] == 0 {
			delete(p.owners, q.Owner)
		}
	}
}

// refuse ends a request that is not released.
func (p *State) refuse(q *request, why requests.Reason) {
	p.end(q)
	p.effect(Effect{Kind: Refuse, ID: q.ID, Reason: why})
}

// end forgets a request that is not released, and leaves what it has below.
func (p *State) end(q *request) {
	p.withdraw(q)
	delete(p.requests, q.ID)
	p.count(q, -q.Permits)
}
