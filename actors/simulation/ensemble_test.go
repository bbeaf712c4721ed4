package simulation

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// An ensemble is one embedded server with several addresses, each with a state of its own. An
// address that lags shows an old state, as a follower may. The first address is the leader, which
// never lags. A session that loses its connection goes to the next address. An address refuses a
// session that has read a later state than its own. There are no elections among the servers, and
// no writes are lost.

// ensembleServer is one address of the embedded server.
type ensembleServer struct {
	address address
	away    atomic.Bool
	lags    bool // it shows an old state
}

// serverList returns the list of servers for a client. The network itself chooses the server that
// is dialed, because go-zookeeper shuffles the list at random.
func (n *network) serverList() string {
	return strings.Repeat(",server:2181", len(n.servers))[1:]
}

// server returns the server for the n-th dial of the host.
func (h *host) server(n uint64) *ensembleServer {
	if h.plain {
		return h.network.servers[0]
	}
	return h.network.servers[(h.seed+n)%uint64(len(h.network.servers))]
}

// cutFrom breaks the connections to one server.
func (h *host) cutFrom(to *ensembleServer) {
	h.mu.Lock()
	connections := slices.Clone(h.connections)
	h.mu.Unlock()
	for _, c := range connections {
		if c.server == to {
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

// follower returns a random server that is not the leader.
func (n *network) follower(r *rand.Rand) *ensembleServer {
	return n.servers[1+r.IntN(len(n.servers)-1)]
}

// markAllAffected is markAffected for all processes, since any of them may be connected to the
// server, or connect to it.
func (sim *simulation) markAllAffected(d time.Duration) {
	for _, p := range sim.incarnations {
		p.markAffected(d)
	}
}

// lagServer has a server lag behind. The server catches up now and then, and when it answers a
// write.
func (sim *simulation) lagServer(r *rand.Rand, span time.Duration) {
	s := sim.network.follower(r)
	if s.lags {
		return
	}
	sim.record("%s lags", s.address)
	sim.markAllAffected(span + 3*time.Second)
	s.lags = true
	catchUp := func() { sim.server.ThawAddress(string(s.address)) }
	var lag func()
	lag = func() {
		if s.lags {
			catchUp()
			sim.server.FreezeAddress(string(s.address))
			sim.after(time.Duration(1+r.Int64N(int64(2*time.Second))), lag)
		}
	}
	lag()
	sim.undoAfter(span, func() {
		s.lags = false
		catchUp()
	})
}

// stopEnsembleServer has a server be away, so that its clients connect to others.
func (sim *simulation) stopEnsembleServer(r *rand.Rand, span time.Duration) {
	s := sim.network.follower(r)
	if s.away.Swap(true) {
		return
	}
	sim.record("%s is away", s.address)
	sim.markAllAffected(span + 3*time.Second)
	for i, h := range sim.network.hosts { // at times of their own, because each client sets timers then
		sim.after(time.Duration(i)*time.Microsecond, func() { h.cutFrom(s) })
	}
	sim.undoAfter(span, func() { s.away.Store(false) })
}

// loseHistory takes a backup of the servers, or has them come back from an earlier one after an
// outage in which all sessions end. The first backup is as good as empty.
func (sim *simulation) loseHistory(r *rand.Rand) {
	if r.IntN(2) == 0 {
		sim.record("a backup is taken")
		sim.backups = append(sim.backups, sim.server.Backup())
		return
	}
	if sim.network.away.Load() {
		return
	}
	outage := 2*sim.plan.sessionTimeout + time.Duration(r.Int64N(int64(sim.plan.sessionTimeout)))
	back := sim.now() + outage
	sim.markAllAffected(outage + 2*sim.plan.sessionTimeout)
	sim.stopServer(true)
	sim.undoAfter(outage, func() {
		if sim.now() >= back { // otherwise sessions go on, of which the restored servers may not know
			n := r.IntN(len(sim.backups))
			sim.record("the servers are restored from backup %d of %d", n, len(sim.backups))
			sim.server.Restore(sim.backups[n])
			sim.historyLost()
			clear(sim.guardedWrites)
			for _, p := range sim.slots {
				clear(p.lostSessions) // the backup may have sessions that were closed
			}
		}
		sim.startServer()
	})
}
