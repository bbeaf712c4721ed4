package remote

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/lease"
	"github.com/actorlock/actorlock/messages"
)

// leaseHistory is a history of a clientLease: what a session does by it, its servers, and the network
// between. It has no goroutines and no clock.
type leaseHistory struct {
	*rapid.T
	l      clientLease
	now    time.Duration
	events []leaseEvent // in order of their times

	servers  []*leaseServer // that the only name leads to: the first one, unless astray
	astray   bool
	conn     int // the connection of the next stream
	dead     int // the last connection by which nothing comes
	cutUntil time.Duration

	stream  int // number of the present stream; 0: there is none
	streams int
	dialing bool
	renewal int // number of the newest timer of renewals
	losses  []string
}

type leaseEvent struct {
	at time.Duration
	do func()
}

// leaseServer is a lock server.
type leaseServer struct {
	incarnation uint64
	began       time.Duration
	leases      map[uint64]*lease.ServerEnd
}

// promise is what the servers of the histories promise.
const promise = 4 * time.Second

func (h *leaseHistory) at(at time.Duration, do func()) {
	i, _ := slices.BinarySearchFunc(h.events, at, func(e leaseEvent, at time.Duration) int {
		if e.at <= at {
			return -1
		}
		return 1
	})
	h.events = slices.Insert(h.events, i, leaseEvent{at, do})
}

// send has a message arrive, if the connection works.
func (h *leaseHistory) send(conn int, arrive func()) {
	at := h.now + time.Duration(h.l.random.IntN(40))*time.Millisecond
	h.at(at, func() {
		if conn > h.dead && h.now >= h.cutUntil {
			arrive()
		}
	})
}

func (h *leaseHistory) dial() {
	if h.stream != 0 || h.dialing {
		return
	}
	h.dialing = true
	conn, answered := h.conn, false
	name, hello := h.l.hello(h.now)
	h.at(h.now+h.l.handshakeTime(h.now), func() {
		if !answered {
			h.dialing, answered = false, true
			h.conn++
			h.l.failed(name)
			h.at(h.now+h.l.pause(h.now), h.dial)
		}
	})
	h.send(conn, func() {
		s := h.servers[0]
		if h.astray {
			s = h.servers[1+h.l.random.IntN(len(h.servers)-1)]
		}
		w := &messages.Welcome{Incarnation: s.incarnation, UpNanos: int64(h.now - s.began)}
		if s.leases[hello.Lease] != nil && hello.Incarnation == s.incarnation {
			w.Lease, w.Resumed = hello.Lease, true
			s.leases[hello.Lease].Resume()
		} else {
			w.Lease = uint64(h.l.random.Int64()) | 1
			s.leases[w.Lease] = lease.NewServerEnd(h.now, promise)
		}
		h.send(conn, func() {
			if !answered {
				h.dialing, answered = false, true
				h.welcome(conn, s, hello, w)
			}
		})
	})
}

func (h *leaseHistory) welcome(conn int, s *leaseServer, hello *messages.Hello, w *messages.Welcome) {
	if hello.Lease != h.l.id.lease { // it has lapsed
		h.dial()
		return
	}
	if hello.Lease != 0 && !w.Resumed {
		if h.l.isElsewhere(h.now, w) {
			h.conn++
			h.at(h.now+h.l.pause(h.now), h.dial)
			return
		}
		h.lose("started anew")
	}
	h.streams++
	h.stream = h.streams
	if w.Resumed {
		h.l.resumed(h.now)
	} else {
		h.l.granted(h.now, heldLease{w.Lease, w.Incarnation, "name"})
	}
	h.renew(h.stream, conn, s)
}

func (h *leaseHistory) renew(stream, conn int, s *leaseServer) {
	if h.stream != stream {
		return
	}
	r, pause, err := h.l.renewal(h.now)
	if err != nil {
		h.endStream(h.l.silent())
		return
	}
	if r == nil {
		return
	}
	end := s.leases[h.l.id.lease]
	h.send(conn, func() {
		if end.Renew(h.now, r.Number, r.Got, promise) {
			h.send(conn, func() {
				if h.stream != stream {
					return
				}
				h.l.heard = h.now
				if h.l.renewed(h.now, &messages.Renewed{Number: r.Number, ForNanos: int64(promise)}) {
					h.at(h.l.validUntil(), func() {})
					h.renewAfter(h.l.renewalPause(h.now), stream, conn, s)
				}
			})
		}
	})
	h.renewAfter(pause, stream, conn, s)
}

func (h *leaseHistory) renewAfter(d time.Duration, stream, conn int, s *leaseServer) {
	h.renewal++
	timer := h.renewal
	h.at(h.now+d, func() {
		if h.renewal == timer {
			h.renew(stream, conn, s)
		}
	})
}

func (h *leaseHistory) endStream(dead bool) {
	if h.stream == 0 {
		return
	}
	h.stream = 0
	if dead {
		h.conn++
	}
	h.l.ended(h.now, dead)
	h.at(h.now+h.l.pause(h.now), h.dial)
}

func (h *leaseHistory) lose(why string) {
	h.losses = append(h.losses, why)
	h.l.valid.passed.Store(true)
	h.l.giveUp(h.now, false)
}

// run has all happen until a time, and checks after each event that the server of a lease that the
// client takes for valid has not ended it.
func (h *leaseHistory) run(until time.Duration) {
	for len(h.events) > 0 && h.events[0].at <= until {
		e := h.events[0]
		h.events = h.events[1:]
		h.now = e.at
		if h.l.lapsed(h.now) {
			h.lose("lapsed")
			h.stream = 0
			h.l.attempts = 0
			h.dial()
		}
		e.do()
		if h.l.valid == nil || h.l.lapsed(h.now) {
			continue
		}
		for _, s := range h.servers {
			if s.incarnation == h.l.id.incarnation && s.leases[h.l.id.lease].Ended(h.now) {
				h.Fatalf("at %v the lease is valid until %v, and the server has ended it", h.now, h.l.validUntil())
			}
		}
	}
	h.now = until
}

func newLeaseHistory(t *rapid.T) *leaseHistory {
	h := &leaseHistory{T: t, conn: 1}
	h.l = clientLease{servers: []string{"name"}, random: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)),
		wanted: rapid.SampledFrom([]time.Duration{0, 500 * time.Millisecond}).Draw(t, "margin")}
	for i := range 3 {
		// The servers run already. Of one that has started while its Welcome is under way the client cannot tell.
		h.servers = append(h.servers, &leaseServer{incarnation: uint64(i + 1), began: -time.Second, leases: map[uint64]*lease.ServerEnd{}})
	}
	h.at(0, h.dial)
	h.run(time.Second)
	if h.l.valid == nil {
		t.Fatal("there is no lease after a second")
	}
	return h
}

// A client keeps its lease through any broken streams and half-open connections, and streams to other
// servers of the same name, as long as it can reach its server for most of the time.
func TestClientLeaseIsKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := newLeaseHistory(t)
		for range rapid.IntRange(1, 12).Draw(t, "faults") {
			h.run(h.now + time.Duration(rapid.IntRange(0, 6000).Draw(t, "before"))*time.Millisecond)
			switch rapid.IntRange(0, 4).Draw(t, "fault") {
			case 0:
				h.endStream(false)
			case 1:
				h.dead = h.conn
			case 2:
				h.astray = true
				h.endStream(false)
				h.run(h.now + time.Duration(rapid.IntRange(0, 900).Draw(t, "astray"))*time.Millisecond)
				h.astray = false
			case 3: // the end of the stream is all that comes
				h.dead = h.conn
				h.endStream(false)
			case 4:
				h.cutUntil = h.now + time.Duration(rapid.IntRange(0, 500).Draw(t, "cut"))*time.Millisecond
			}
			h.run(h.now + promise) // faults that follow each other at once may leave no time
		}
		if len(h.losses) > 0 {
			t.Fatalf("the lease was lost: %v", h.losses)
		}
	})
}

// Whatever happens, the client takes no lease for valid that its server has ended, and has a lease again
// soon after the last fault.
func TestClientLeaseIsValid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := newLeaseHistory(t)
		incarnation := uint64(10)
		for range rapid.IntRange(1, 20).Draw(t, "faults") {
			h.run(h.now + time.Duration(rapid.IntRange(0, 3000).Draw(t, "before"))*time.Millisecond)
			switch rapid.IntRange(0, 4).Draw(t, "fault") {
			case 0:
				h.endStream(false)
			case 1:
				h.dead = h.conn + rapid.IntRange(0, 2).Draw(t, "more")
			case 2:
				h.astray = !h.astray
				h.endStream(false)
			case 3:
				h.cutUntil = h.now + time.Duration(rapid.IntRange(0, 8000).Draw(t, "cut"))*time.Millisecond
			case 4: // the server is started anew
				incarnation++
				h.servers[0] = &leaseServer{incarnation: incarnation, began: h.now, leases: map[uint64]*lease.ServerEnd{}}
				h.endStream(false)
			}
		}
		h.astray, h.dead, h.cutUntil = false, 0, 0
		h.run(h.now + 2*time.Minute)
		if h.l.valid == nil || h.l.lapsed(h.now) {
			t.Fatalf("there is no lease two minutes after the last fault; %d attempts", h.l.attempts)
		}
	})
}

// Of a server that was started anew the client hears three times, and then lets go of the lease, unless
// others of the same name answer, or one that is too old.
func TestStrangers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why       string
		answers   []*messages.Welcome
		elsewhere []bool
	}{
		{"started anew", []*messages.Welcome{{Incarnation: 2, UpNanos: 1}, {Incarnation: 2, UpNanos: 2}, {Incarnation: 2, UpNanos: 3}}, []bool{true, true, false}},
		{"does not say since when it runs", []*messages.Welcome{{Incarnation: 2}, {Incarnation: 2}, {Incarnation: 2}}, []bool{true, true, false}},
		{"several", []*messages.Welcome{{Incarnation: 2}, {Incarnation: 3}, {Incarnation: 2}, {Incarnation: 3}}, []bool{true, true, true, true}},
		{"ran already", []*messages.Welcome{{Incarnation: 2, UpNanos: int64(time.Hour)}, {Incarnation: 2, UpNanos: int64(time.Hour)}, {Incarnation: 2, UpNanos: int64(time.Hour)}},
			[]bool{true, true, true}},
	} {
		l := clientLease{heard: time.Second}
		for i, w := range test.answers {
			if is := l.isElsewhere(3*time.Second, w); is != test.elsewhere[i] {
				t.Errorf("%s: after answer %d the lease is elsewhere: %t", test.why, i+1, is)
			}
		}
	}
}
