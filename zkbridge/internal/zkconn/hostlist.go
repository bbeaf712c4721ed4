package zkconn

import (
	"sync"
	"time"
)

// hostList hands out the servers in turn, for go-zookeeper. Its own provider resolves
// all names once, at the start, and one bad name fails all; this one leaves the
// names to the dialer. Its pauses are all of a second, for all clients of a server
// that fails; these are spread, and the dialer makes them.
type hostList struct {
	isOver   func() bool   // the epoch is dead
	maxPause time.Duration // pause

	mu        sync.Mutex
	spread    Jitter
	servers   []string
	next      int
	tries     int // since a server was last connected
	connected time.Time
	pauseDue  bool // a pause is due before the server given last is dialed

	attemptTimeout time.Duration // of the last attempt, 0 since a server was connected
	deadline       time.Time     // of the last attempt
}

// firstAttemptTimeout is how long the first attempt to connect may take. A server that starts may
// accept a connection and never answer on it, and a connection that was begun while the network
// failed may not notice that it works again: another attempt is answered at once.
const firstAttemptTimeout = time.Second

// maxPause bounds the pause before a server is dialed again. Short sessions cannot
// wait for so long: an eighth of their timeout is all they have.
const maxPause = time.Second

func newHostList(over func() bool, session time.Duration) *hostList {
	return &hostList{isOver: over, maxPause: min(session/8, maxPause), spread: NewJitter()}
}

// Init takes the servers, which go-zookeeper has shuffled.
func (h *hostList) Init(servers []string) error {
	h.servers = servers
	return nil
}

// Len is not called; the interface wants it.
func (h *hostList) Len() int { return len(h.servers) }

// Next gives the next server, and whether go-zookeeper is to pause before. That is
// so for a dead epoch, as only while pausing it notices that it is closed.
func (h *hostList) Next() (server string, pause bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	if h.tries == 0 {
		// At once after a connection is lost, unless it was a short one.
		h.pauseDue = time.Since(h.connected) < time.Second
	} else {
		h.pauseDue = h.tries%len(h.servers) == 0
	}
	if h.tries++; !h.deadline.After(time.Now()) {
		h.attemptTimeout *= 2 // the last attempt has had no answer in its time
	}
	return server, h.isOver()
}

// beginAttempt returns until when an attempt that begins now may take, which is no longer than limit.
func (h *hostList) beginAttempt(limit time.Duration) (deadline time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attemptTimeout = min(max(h.attemptTimeout, firstAttemptTimeout), limit)
	h.deadline = time.Now().Add(h.attemptTimeout)
	return h.deadline
}

// pause is how long to wait before the server given last is dialed.
func (h *hostList) pause() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.pauseDue {
		return 0
	}
	return h.maxPause/4 + h.spread.Below(h.maxPause*3/4)
}

// Connected hears that the server given last has confirmed the session.
func (h *hostList) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tries, h.attemptTimeout = 0, 0
	h.connected = time.Now()
}
