package remote

import "github.com/actorlock/actorlock/gen/host"

// sentRequests are the requests that the server has or is to have, by number.
type sentRequests struct {
	targets map[uint64]*target
	granted int // of targets
}

// target is where the messages about a request go.
type target struct {
	lock    *host.Ref
	granted bool
}

// grant notes that a request is granted.
func (r *sentRequests) grant(number uint64) {
	if t := r.targets[number]; t != nil && !t.granted {
		t.granted = true
		r.granted++
	}
}

// forget drops a request: the lock's actor does not expect further messages about it.
func (r *sentRequests) forget(number uint64) {
	if t := r.targets[number]; t != nil && t.granted {
		r.granted--
	}
	delete(r.targets, number)
}

func (r *sentRequests) clear() {
	clear(r.targets)
	r.granted = 0
}
