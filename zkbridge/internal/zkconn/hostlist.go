package zkconn

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

// ServerList is the servers, host:port each, which may be replaced at any time.
type ServerList struct {
	servers atomic.Pointer[[]string]
}

// NewServerList returns a list of servers, one at least. Nothing may write to them later.
func NewServerList(servers []string) *ServerList {
	l := &ServerList{}
	l.Replace(servers)
	return l
}

// Replace replaces all servers.
func (l *ServerList) Replace(servers []string) { l.servers.Store(&servers) }

// All returns the servers. Nothing may write to them.
func (l *ServerList) All() []string { return *l.servers.Load() }

// hostList returns the servers in turn, and the pauses before they are dialed, which are spread. The
// dialer resolves their names. Only one goroutine may use a hostList.
type hostList struct {
	left     func() time.Duration // until the session's deadline; not positive without a session
	maxPause time.Duration        // the constant maxPause, or less for a short session

	list      *ServerList
	spread    Jitter
	servers   []string // of the list, shuffled
	of        []string // what the list had then
	turn      int      // index of the next server
	tries     int      // how many servers were tried since one was last connected
	connected time.Time

	attemptTimeout time.Duration // of the last attempt, 0 since a server was connected
	deadline       time.Time     // of the last attempt
}

// firstAttemptTimeout is how long the first attempt to connect may take. A server that starts may
// accept a connection and never answer on it, and a connection that was begun while the network
// failed may not notice that the network works again: another attempt is answered at once.
const firstAttemptTimeout = time.Second

// maxPause bounds the pause before a server is dialed again, which spares the servers when all
// their clients come back at once. Those with a short session wait for a fifth of its timeout at
// most. The first pause is a quarter as long, and the next one half. While there is a session, a
// pause that is longer than the first takes a quarter at most of the time that is left until the
// deadline.
const maxPause = 4 * time.Second

func newHostList(list *ServerList, left func() time.Duration, session time.Duration) *hostList {
	return &hostList{list: list, left: left, maxPause: min(session/5, maxPause), spread: NewJitter()}
}

// next returns the next server.
func (h *hostList) next() (server string) {
	if now := h.list.All(); !slices.Equal(now, h.of) {
		h.servers, h.of = slices.Clone(now), now
		rand.Shuffle(len(h.servers), func(i, j int) { h.servers[i], h.servers[j] = h.servers[j], h.servers[i] })
		h.turn, h.tries = 0, 0
	}
	server = h.servers[h.turn]
	h.turn = (h.turn + 1) % len(h.servers)
	if h.tries++; !h.deadline.After(time.Now()) {
		h.attemptTimeout *= 2 // the last attempt had no answer in its time
	}
	return server
}

// beginAttempt returns the deadline of an attempt that begins now, which is limit from now at most.
func (h *hostList) beginAttempt(limit time.Duration) (deadline time.Time) {
	h.attemptTimeout = min(max(h.attemptTimeout, firstAttemptTimeout), limit)
	h.deadline = time.Now().Add(h.attemptTimeout)
	return h.deadline
}

// pause returns the pause before the server returned last is dialed.
func (h *hostList) pause() time.Duration {
	tried := h.tries - 1 // before it
	if tried%len(h.servers) != 0 || tried == 0 && time.Since(h.connected) >= time.Second {
		return 0 // there is a pause before each round of all servers, and before the first one only after a short connection
	}
	round := tried / len(h.servers) // the number of the next round, from 0
	pause := h.maxPause >> max(0, 3-max(1, round))
	if left := h.left(); left > 0 {
		pause = min(pause, max(left, h.maxPause)/4)
	}
	return pause/4 + h.spread.Below(pause*3/4)
}

// onConnected notes that the server returned last has confirmed the session.
func (h *hostList) onConnected() {
	h.tries, h.attemptTimeout = 0, 0
	h.connected = time.Now()
}
