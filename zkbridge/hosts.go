package zkbridge

import (
	"sync"
	"time"
)

// hosts hands out the servers in turn, for go-zookeeper. Its own provider resolves
// all names once, at the start, and one bad name fails all; this one leaves the
// names to the dialer.
type hosts struct {
	over func() bool // the epoch is dead

	mu        sync.Mutex
	servers   []string
	next      int
	tries     int // since a server was last connected
	connected time.Time
}

// Init takes the servers, which go-zookeeper has shuffled.
func (h *hosts) Init(servers []string) error {
	h.servers = servers
	return nil
}

// Len is not called; the interface wants it.
func (h *hosts) Len() int { return len(h.servers) }

// Next gives the next server, and whether to pause before (a second). There is no
// pause in the first round after a connection is lost, unless it was a short one.
// Without pauses go-zookeeper would not notice that it is closed, so a dead epoch
// always pauses.
func (h *hosts) Next() (server string, pause bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	switch {
	case h.over():
		pause = true
	case h.tries == 0:
		pause = time.Since(h.connected) < time.Second
	default:
		pause = h.tries%len(h.servers) == 0
	}
	h.tries++
	return server, pause
}

// Connected hears that the server given last has confirmed the session.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tries = 0
	h.connected = time.Now()
}
