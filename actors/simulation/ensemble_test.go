package simulation

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// An ensemble is one embedded server with an address for each of its members. What is connected at an
// address that lags reads one old state, as at a follower. The first member is the leader, which never
// lags. A session goes to the next member when its connection is lost, and is refused by one that has
// not seen what the session has read. A vote, and a log of which a part is lost, there is not.

// member is one server. All of them are one embedded server, which has a state for each address.
type member struct {
	address address
	away    atomic.Bool
	lags    bool // its state is an old one
}

// list is the list of servers that a client gets. It is the network that knows which one is
// dialed: go-zookeeper shuffles names at random.
func (n *network) list() string {
	return strings.Repeat(",server:2181", len(n.servers))[1:]
}

// server returns the one that the host dials as its n-th.
func (h *host) server(n uint64) *member {
	if h.plain {
		return h.net.servers[0]
	}
	return h.net.servers[(h.seed+n)%uint64(len(h.net.servers))]
}

// cutFrom breaks those to a server.
func (h *host) cutFrom(to *member) {
	h.mu.Lock()
	links := slices.Clone(h.links)
	h.mu.Unlock()
	for _, c := range links {
		if c.to == to {
			c.cut()
		}
	}
}

// serverFaults are the faults of one server of an ensemble.
var serverFaults = []string{"lag", "member"}

// drawServers draws an ensemble instead of one server for a quarter of the seeds.
func (p *plan) drawServers(r *rand.Rand) {
	p.servers = 1
	if p.seed%8 == 5 || p.seed%8 == 7 {
		p.servers = 3
		p.draw(r, append(serverFaults, "cut"), 0.8, always, time.Second, 5*time.Second, 20*time.Second)
	}
}

// follower is one of those that are not the leader.
func (n *network) follower(r *rand.Rand) *member { return n.servers[1+r.IntN(len(n.servers)-1)] }

// disturbAll is disturb for all processes, any of which may be at a server, or come there.
func (w *world) disturbAll(d time.Duration) {
	for _, p := range w.all {
		p.disturb(d)
	}
}

// lag has a server lag behind. It catches up now and then, and when it answers a write.
func (w *world) lag(r *rand.Rand, span time.Duration) {
	m := w.net.follower(r)
	if m.lags {
		return
	}
	w.line("%s lags", m.address)
	w.disturbAll(span + 3*time.Second)
	m.lags = true
	catchUp := func() { w.server.ThawAddress(string(m.address)) }
	var lag func()
	lag = func() {
		if m.lags {
			catchUp()
			w.server.FreezeAddress(string(m.address))
			w.after(time.Duration(1+r.Int64N(int64(2*time.Second))), lag)
		}
	}
	lag()
	w.lasting(span, func() {
		m.lags = false
		catchUp()
	})
}

// leaveEnsemble has a server be away: its clients go to others.
func (w *world) leaveEnsemble(r *rand.Rand, span time.Duration) {
	m := w.net.follower(r)
	if m.away.Swap(true) {
		return
	}
	w.line("%s is away", m.address)
	w.disturbAll(span + 3*time.Second)
	for i, h := range w.net.hosts { // at times of their own, as each client sets timers then
		w.after(time.Duration(i)*time.Microsecond, func() { h.cutFrom(m) })
	}
	w.lasting(span, func() { m.away.Store(false) })
}
