package remote

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors/internal/lease"
	"github.com/actorlock/actorlock/messages"
)

// validity is until when a lease is valid, for any goroutine to read.
type validity struct {
	margin time.Duration // between until and the end of the lease
	until  atomic.Int64  // by the clock of the session
	passed atomic.Bool   // it was seen to be over: a later answer does not bring it back
}

func (v *validity) over(at time.Duration) bool {
	if v.passed.Load() {
		return true
	}
	if int64(at) < v.until.Load() {
		return false
	}
	v.passed.Store(true)
	return true
}

// clientLease decides for a client which server it asks for a lease, until when the lease is valid, and
// when a stream is of no use. It does no I/O and sets no timers. All times are of the session's clock.
type clientLease struct {
	wanted  time.Duration // margin of the configuration
	random  *rand.Rand    // for pauses: one for each session, so that a simulation repeats
	servers []string
	server  int // of servers: the one of the lease, or the next to ask

	id      heldLease // zero without a lease
	end     lease.ClientEnd
	valid   *validity     // nil before the first answer of a lease
	letGo   heldLease     // to be named by the next Hello
	letGoAt time.Duration // when that may be said: work that is to stop has the margin

	attempts   int           // that have failed since the last answer to a renewal
	heard      time.Duration // when the last frame of the lease's server came
	unanswered int           // renewals of the present stream
	asked      time.Duration // when the first of unanswered was sent
	draining   bool          // the server answers no renewals on this stream from some time on
	reconnect  bool          // the next attempt is on another connection than the last stream
	strangers  []uint64      // the incarnations that have answered since, and do not know the lease
}

// heldLease names a lease.
type heldLease struct {
	lease, incarnation uint64
	server             string
}

// The times of renewals and attempts.
const (
	// maxUnanswered is how many renewals of a stream may have no answer when the next is due, so that
	// there is time for another stream; maxUnansweredFirst is that number before the first answer by a
	// lease.
	maxUnanswered      = 2
	maxUnansweredFirst = 4
	// firstRenewals is the first pause between renewals before the first answer. Each one is twice as
	// long as the one before it, up to longestFirst: a server that has ZooKeeper again answers the next
	// renewal only.
	firstRenewals = 250 * time.Millisecond
	longestFirst  = 4 * time.Second
	// shortestHandshake bounds each attempt for a lease that is nearly over.
	shortestHandshake = 50 * time.Millisecond
	// maxStrangers is how often in succession one server may say that it does not know the lease. It is
	// the lease's server by then, started anew.
	maxStrangers = 3
)

// ---- streams

// hello returns which server to ask next, and for what.
func (l *clientLease) hello(now time.Duration) (server string, h *messages.Hello) {
	server = l.servers[l.server]
	h = &messages.Hello{Version: protocolVersion, Lease: l.id.lease, Incarnation: l.id.incarnation}
	switch {
	case l.id.lease != 0:
		server = l.id.server
	case l.letGo.lease != 0 && l.letGo.server == server && l.letGoAt <= now:
		h.LetGo, h.Incarnation = l.letGo.lease, l.letGo.incarnation
	}
	return server, h
}

// handshakeTime returns for how long to wait for the answer to a Hello. A valid lease leaves time for
// further attempts: the first may be on a connection that is dead.
func (l *clientLease) handshakeTime(now time.Duration) time.Duration {
	if l.valid == nil {
		return handshakeLimit << l.rounds()
	}
	part := (l.validUntil() - now) / 3
	if l.reconnect {
		part = (l.validUntil() - now) / 2
	}
	return min(handshakeLimit, max(part, shortestHandshake))
}

// rounds returns how often the client has failed with all servers, up to 3. It waits for longer
// after each round: a server that has too much to do would otherwise work for clients that have
// left by then, and never be done. While its lease is valid the client asks one server only, and
// must be free for the others when the lease is over.
func (l *clientLease) rounds() int {
	if l.valid != nil {
		return 0
	}
	return min(l.attempts/len(l.servers), 3)
}

// isElsewhere handles the Welcome of a server that does not know the lease. It reports whether the
// server of the lease may be another one of the same name. It is if this one ran already when that
// one was last heard, or if several have answered.
func (l *clientLease) isElsewhere(now time.Duration, w *messages.Welcome) bool {
	l.strangers = append(l.strangers, w.Incarnation)
	l.reconnect = true
	several := slices.ContainsFunc(l.strangers, func(n uint64) bool { return n != w.Incarnation })
	return several || time.Duration(w.UpNanos) > now-l.heard || len(l.strangers) < maxStrangers
}

// resumed begins the use of a stream by which the lease goes on.
func (l *clientLease) resumed(now time.Duration) {
	l.heard, l.unanswered, l.draining, l.reconnect, l.strangers = now, 0, false, false, nil
}

// granted begins a lease.
func (l *clientLease) granted(now time.Duration, id heldLease) {
	l.id, l.end, l.valid = id, lease.ClientEnd{}, nil
	l.server = max(slices.Index(l.servers, id.server), 0)
	l.resumed(now)
}

// silent reports whether nothing has come since the first renewal without an answer was sent: the
// connection may be dead, though neither end was told so.
func (l *clientLease) silent() bool { return l.unanswered > 0 && l.heard <= l.asked }

// ended handles the end of a stream. dead reports that its connection may be dead.
func (l *clientLease) ended(now time.Duration, dead bool) {
	l.reconnect = dead
	if l.valid == nil { // there is nothing to resume, and this server may not come back
		l.giveUp(now, false)
		l.nextServer()
	}
}

// failed handles an attempt that has failed.
func (l *clientLease) failed(server string) {
	l.reconnect = true
	if l.id.lease == 0 && server == l.servers[l.server] { // the end of the lease may have been the next server's turn
		l.nextServer()
	}
}

// pause returns how long to wait before the next attempt: for longer after each one, but not for all of
// the time for which the lease is valid.
func (l *clientLease) pause(now time.Duration) time.Duration {
	d := min(50*time.Millisecond<<min(l.attempts, 10), 3*time.Second)
	l.attempts++
	if l.valid != nil {
		d = min(d, max((l.validUntil()-now)/8, 10*time.Millisecond))
	}
	return d/2 + time.Duration(l.random.Int64N(int64(d)))
}

func (l *clientLease) nextServer() { l.server = (l.server + 1) % len(l.servers) }

// setServers replaces the servers, and reports whether that of the lease is one of them.
func (l *clientLease) setServers(servers []string) bool {
	l.servers, l.server = servers, max(slices.Index(servers, l.id.server), 0)
	return l.id.lease == 0 || slices.Contains(servers, l.id.server)
}

// ---- renewals

// renewal begins a renewal, which the caller sends at once. The next one is due after the pause. The
// error is that the stream is of no use: another one may be. Without both the lease is not valid any
// more.
func (l *clientLease) renewal(now time.Duration) (r *messages.Renew, pause time.Duration, err error) {
	most := maxUnanswered
	if l.valid == nil {
		most = maxUnansweredFirst + l.rounds()
	}
	if l.unanswered >= most && !l.draining {
		return nil, 0, fmt.Errorf("%d renewals have no answer", l.unanswered)
	}
	number, got := l.end.Renew(now)
	if number == 0 {
		return nil, 0, nil
	}
	pause = min(firstRenewals<<l.unanswered, longestFirst)
	if l.valid != nil {
		pause = l.renewalPause(now)
	}
	if l.unanswered == 0 {
		l.asked = now
	}
	l.unanswered++
	return &messages.Renew{Number: number, Got: got}, pause, nil
}

func (l *clientLease) renewalPause(now time.Duration) time.Duration {
	return max((l.validUntil()-now)/renewalsInTime, time.Millisecond)
}

// renewed handles the answer to a renewal, and reports whether the lease is valid for longer by it.
func (l *clientLease) renewed(now time.Duration, r *messages.Renewed) bool {
	if !l.end.Renewed(now, r.Number, time.Duration(r.ForNanos)) {
		return false
	}
	l.unanswered = 0
	if !l.end.Believes(now) {
		return false
	}
	if l.valid == nil {
		l.valid = &validity{margin: min(l.wanted, (l.end.Until()-now)/5)}
	}
	l.attempts = 0
	l.valid.until.Store(int64(l.end.Until() - l.valid.margin))
	return true
}

// validUntil returns until when the grants of the lease hold. It is called behind the first answer.
func (l *clientLease) validUntil() time.Duration { return time.Duration(l.valid.until.Load()) }

// lapsed reports whether the lease was valid, and is no more.
func (l *clientLease) lapsed(now time.Duration) bool { return l.valid != nil && l.valid.over(now) }

// giveUp lets go of the lease. holds reports that the client holds something by it.
func (l *clientLease) giveUp(now time.Duration, holds bool) {
	l.letGo, l.letGoAt = l.id, 0
	if holds && l.valid != nil && l.valid.margin > 0 {
		l.letGoAt = min(now+l.valid.margin, l.end.Until())
	}
	l.id, l.valid, l.strangers = heldLease{}, nil, nil
}
