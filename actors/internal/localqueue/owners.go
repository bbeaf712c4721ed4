package localqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The owners of this process.

// progress is how far a node or an owner has come.
type progress uint8

const (
	unsent   progress = iota // there is no node
	creating                 // the node is asked for
	queued                   // the owner waits
	held
	refused // the lock below has refused the node
)

// ownerRequest is one request of an owner.
type ownerRequest struct {
	id              requests.ID
	kind            queue.Kind
	try             bool
	notifyContended bool // once it holds: see Acquire.NotifyContended
	enters          bool // waits for a node beside what its owner holds
}

// localOwner is an owner that waits or holds. It has one request at least;
// requests of an owner with a name share one localOwner.
type localOwner struct {
	stage    progress // queued: it is in Queue.waiting; held: it is in Queue.holders
	owner    string
	kind     queue.Kind
	data     []byte
	step     uint32
	requests []ownerRequest
	mixed    bool // a request was for another kind, or waited for a node beside what the owner held
	buf      [1]ownerRequest
	place    requests.Element[localOwner] // in the list of its stage
}

func (l *Queue) add(b *localOwner, r ownerRequest) {
	l.requests.Put(r.id, b)
	b.requests = append(b.requests, r)
	b.mixed = b.mixed || r.kind != b.kind || r.enters
	if r.try {
		l.tries++
	}
}

// drop takes a request off its owner. The owner ends with the last one.
func (l *Queue) drop(b *localOwner, id requests.ID) {
	l.requests.Remove(id)
	i := b.index(id)
	if b.requests[i].try {
		l.tries--
	}
	b.requests = slices.Delete(b.requests, i, i+1)
	if len(b.requests) > 0 {
		l.downgrade(b)
		return
	}
	if b.owner != "" {
		delete(l.owners, b.owner)
	}
	switch b.stage {
	case queued:
		l.waiting.remove(b)
	case held:
		l.holders.remove(b)
	}
	l.spare.Put(b)
}

// downgrade leaves a holder with the kind of the requests that it still has.
func (l *Queue) downgrade(b *localOwner) {
	if b.stage == held && !slices.ContainsFunc(b.requests, func(r ownerRequest) bool { return r.kind == b.kind }) {
		l.holders.kinds[b.kind]--
		b.kind = b.requests[0].kind
		l.holders.kinds[b.kind]++
	}
}

// index returns the place of a request. An owner that enters again leaves in reverse order.
func (b *localOwner) index(id requests.ID) int {
	if last := len(b.requests) - 1; b.requests[last].id == id {
		return last
	}
	return slices.IndexFunc(b.requests, func(r ownerRequest) bool { return r.id == id })
}

// entering reports whether a request of a holder is not granted yet.
func (b *localOwner) entering(id requests.ID) bool { return b.requests[b.index(id)].enters }

// othersOfKind returns how many other granted requests of the owner are for the same kind.
func (b *localOwner) othersOfKind(id requests.ID) (others int) {
	if !b.mixed {
		return len(b.requests) - 1
	}
	i := b.index(id)
	for _, r := range b.requests {
		if r.kind == b.requests[i].kind && r.id != id && !r.enters {
			others++
		}
	}
	return others
}

func (l *Queue) newOwner() *localOwner {
	b := l.spare.Take()
	*b = localOwner{}
	b.requests = b.buf[:0]
	return b
}

// refuseAll refuses all waiting requests.
func (l *Queue) refuseAll(why requests.Reason) {
	l.refuseThose(&l.waiting, why, func(ownerRequest) bool { return true })
}

// refuseTries refuses the waiting tries.
func (l *Queue) refuseTries() {
	if l.tries > 0 {
		l.refuseThose(&l.waiting, requests.NotAcquired, func(r ownerRequest) bool { return r.try })
	}
}

// refuseThose refuses the requests of the owners in a list for which refused returns true.
func (l *Queue) refuseThose(of *ownerList, why requests.Reason, refused func(ownerRequest) bool) {
	for b := range of.All() {
		for _, r := range slices.Clone(b.requests) {
			if refused(r) {
				l.Refuse(r.id, why)
				l.drop(b, r.id)
			}
		}
	}
}

func (b *localOwner) onlyTries() bool {
	return !slices.ContainsFunc(b.requests, func(r ownerRequest) bool { return !r.try })
}

// ownerList is a list of owners, and counts them by kind.
type ownerList struct {
	requests.List[localOwner]
	kinds queue.Census
}

func (q *ownerList) empty() bool { return q.First() == nil }

func (q *ownerList) push(b *localOwner) {
	q.kinds[b.kind]++
	q.Append(b, &b.place)
}

func (q *ownerList) remove(b *localOwner) {
	q.kinds[b.kind]--
	b.place.Leave()
}
