package simplelock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/examples/simplelocks/simplelock"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func each(t *testing.T, f func(t *testing.T, s *zktest.Server, path string)) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) { f(t, s, s.Path(t)) })
}

// Two contenders hold in turns, by the lock node and an owner node, whose czxid is the token.
func TestMutex(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server, path string) {
		p := open(t, s, path)
		one, other := p.owner(simplelock.Mutex, exclusive), open(t, s, path).owner(simplelock.Mutex, exclusive)
		first := one.hold()
		conn := s.Client(t)
		_, lockNode, err := conn.Get(path + "/lock")
		must(t, err)
		data, ownerNode, err := conn.Get(path + "/" + first.Node)
		must(t, err)
		if first.Czxid != lockNode.Czxid || first.Czxid != ownerNode.Czxid || first.SessionId != lockNode.EphemeralOwner || string(data) != "data" ||
			first.Epoch != 1 || first.Path != path {
			t.Errorf("%v by %+v and %+v, with %q", first, lockNode, ownerNode, data)
		}
		other.acquire()
		one.lock.SendAcquire(&messages.Acquire{RequestId: 2}, one) // a second request of one contender
		one.refused(messages.Reason_INVALID)
		one.leave()
		second := other.granted()
		if second.Czxid <= first.Czxid {
			t.Errorf("%v after %v", second, first)
		}
		one.release()
		one.refused(messages.Reason_NOT_HELD)
		one.acquire()
		other.leave()
		one.granted()
		one.leave()
		waitNodes(t, s, path, 0)
	})
}

// Readers hold beside each other, and a writer alone. Readers that come after it give way.
func TestReadWrite(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server, path string) {
		r1, r2, w, late := open(t, s, path).owner(simplelock.ReadWrite, read), open(t, s, path).owner(simplelock.ReadWrite, read),
			open(t, s, path).owner(simplelock.ReadWrite, write), open(t, s, path).owner(simplelock.ReadWrite, read)
		r1.hold()
		r2.hold()
		w.acquire()
		waitNodes(t, s, path, 4) // the lock node and the owner node, too
		late.acquire()
		r1.leave()
		waitNodes(t, s, path, 3)
		w.none()
		late.none()
		r2.leave()
		before := w.granted()
		late.none()
		w.leave()
		if g := late.granted(); g.Czxid <= before.Czxid {
			t.Errorf("%v after %v", g, before)
		}
		late.leave()
		waitNodes(t, s, path, 0)
	})
}

// Many contenders of several processes, some of which cancel. None holds beside a writer, tokens
// grow from a writer to the next, and no node is left.
func TestExclusion(t *testing.T) {
	for form, kinds := range map[simplelock.Form][]uint32{simplelock.Mutex: {exclusive, exclusive}, simplelock.ReadWrite: {write, read}} {
		t.Run(string(form), func(t *testing.T) {
			each(t, func(t *testing.T, s *zktest.Server, path string) {
				var l ledger
				var all errgroup.Group
				for range 4 {
					p := open(t, s, path)
					for i := range 4 {
						o := p.owner(form, kinds[i%2])
						all.Go(func() error { return l.use(o.lock, o.kind, 15) })
					}
				}
				must(t, all.Wait())
				waitNodes(t, s, path, 0)
			})
		})
	}
}

// ledger notes who believes to hold.
type ledger struct {
	// ended reports whether the server has ended a session too early, nil if it does not: holders
	// meet then, and that of the session may come late.
	ended    func(session int64) bool
	mu       sync.Mutex
	readers  int
	writer   bool
	last     int64 // token of the last writer
	lastRead int64 // greatest token of a reader since
}

func (l *ledger) enter(kind uint32, g *messages.Granted) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended == nil && (l.writer || kind != read && l.readers > 0):
		return fmt.Errorf("%v beside a writer (%v) or %d readers", g, l.writer, l.readers)
	case (g.Czxid <= l.last || kind != read && g.Czxid <= l.lastRead) && (l.ended == nil || !l.ended(g.SessionId)):
		return fmt.Errorf("%v after %#x and %#x", g, l.last, l.lastRead)
	case kind == read:
		l.readers, l.lastRead = l.readers+1, max(l.lastRead, g.Czxid)
	default:
		l.writer, l.last = true, max(l.last, g.Czxid)
	}
	return nil
}

func (l *ledger) leave(kind uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kind == read {
		l.readers--
	} else {
		l.writer = false
	}
}

// use acquires a lock so often, and cancels some requests.
func (l *ledger) use(lock messages.LockRef, kind uint32, times int) error {
	ctx, stop := context.WithTimeout(context.Background(), zktest.TimeLimit)
	defer stop()
	for id := range uint64(times) {
		pending := lock.Acquire(&messages.Acquire{RequestId: id, Kind: kind})
		if id%5 == 4 {
			pending.Cancel()
			continue
		}
		g, err := pending.Wait(ctx)
		if err != nil {
			return err
		}
		err = l.enter(kind, g)
		l.leave(kind)
		if err != nil {
			return err
		}
		if _, err := lock.Release(&messages.Release{RequestId: id}).Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Each release wakes all that wait: each sends one transaction, and all but one watch the lock node
// again.
func TestHerd(t *testing.T) {
	const waiters = 8
	t.Parallel()
	zktest.EachOwn(t, func(t *testing.T, s *zktest.Server) {
		path := s.Path(t)
		holder := open(t, s, path).owner(simplelock.Mutex, exclusive)
		holder.hold()
		waiting := map[*owner]*program{}
		for range waiters {
			p := open(t, s, path)
			o := p.owner(simplelock.Mutex, exclusive)
			o.acquire()
			waiting[o] = p
		}
		for len(waiting) > 0 {
			// The holder watches its two nodes.
			zktest.Eventually(t, zktest.TimeLimit, func() bool { return s.WatchesBelow(t, path) == len(waiting)+2 }, "all watch")
			for _, p := range waiting {
				p.takeSent()
			}
			holder.leave()
			var next *owner
			zktest.Eventually(t, zktest.TimeLimit, func() bool {
				for o := range waiting {
					if len(o.inbox) > 0 {
						next = o
					}
				}
				return next != nil && s.WatchesBelow(t, path) == len(waiting)-1+2
			}, "one holds, and all others watch again")
			next.granted()
			for o, p := range waiting {
				sent, want := p.takeSent(), map[embedded.Op]int{embedded.OpMulti: 1, embedded.OpGetData: 1}
				if o == next {
					want[embedded.OpGetData] = 2
				}
				// Between two holders the directory is empty. If ZooKeeper collects it, it is made,
				// and the transaction repeated.
				want[embedded.OpMulti] += sent[embedded.OpCreateContainer]
				if sent[embedded.OpMulti] != want[embedded.OpMulti] || sent[embedded.OpGetData] != want[embedded.OpGetData] {
					t.Errorf("one of %d has sent %v, want %v", len(waiting), sent, want)
				}
			}
			delete(waiting, next)
			holder = next
		}
		holder.leave()
	})
}

// A request is cancelled when it holds, while it waits, and at any moment. An owner that is an
// actor ends.
func TestCancel(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server, path string) {
		p := open(t, s, path)
		one, other := p.owner(simplelock.Mutex, exclusive), p.owner(simplelock.Mutex, exclusive)
		one.hold()
		other.acquire()
		p.waitSent(embedded.OpGetData, 3)
		other.cancel()
		other.refused(messages.Reason_CANCELLED)
		other.acquire()
		one.cancel() // a grant, too
		one.refused(messages.Reason_CANCELLED)
		other.granted()
		other.leave()
		for range 20 {
			one.acquire()
			one.cancel()
			one.refused(messages.Reason_CANCELLED)
			other.hold()
			other.leave()
		}
		ending, err := p.system.Spawn("owner", func(self *host.Ref) host.Actor { return &actorOwner{granted: one} })
		must(t, err)
		one.lock.SendAcquire(&messages.Acquire{RequestId: 99}, ending)
		next[*messages.Granted](one)
		ending.Stop()
		other.hold()
		other.leave()
		waitNodes(t, s, path, 0)
	})
}

// A request is cancelled while its nodes are made. The next one does not hold by them.
func TestNextRequest(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server, path string) {
		o := open(t, s, path).owner(simplelock.ReadWrite, read)
		for range 5 {
			o.kind = read
			o.hold()
			o.leave()
			waitNodes(t, s, path, 0)
			o.acquire()
			o.cancel()
			o.kind = write
			o.acquire()
			next[*messages.Refused](o)
			if g := o.granted(); !strings.HasPrefix(g.Node, "W-") {
				t.Errorf("a writer holds by %s", g.Node)
			}
			o.leave()
		}
		waitNodes(t, s, path, 0)
	})
}

// actorOwner is an owner that is an actor. It passes on its messages.
type actorOwner struct{ granted *owner }

func (a *actorOwner) Receive(_ ask.Recipient, msg any) { a.granted.Tell(msg) }
func (a *actorOwner) Stopped(any)                      {}
func (a *actorOwner) Refuse(ask.Recipient, any)        {}

// What a simple lock does not do is refused, with the value and what is accepted.
func TestInvalid(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	zs := open(t, s, "/lock")
	for _, c := range []struct {
		form simplelock.Form
		msg  *messages.Acquire
	}{
		{simplelock.Mutex, &messages.Acquire{Kind: read}},
		{simplelock.ReadWrite, &messages.Acquire{}},
		{simplelock.ReadWrite, &messages.Acquire{Kind: 3}},
		{simplelock.Mutex, &messages.Acquire{Owner: "me"}},
		{simplelock.Mutex, &messages.Acquire{Try: true}},
		{simplelock.Mutex, &messages.Acquire{Permits: 1}},
		{simplelock.Mutex, &messages.Acquire{WaitNanos: 1}},
		{simplelock.Mutex, &messages.Acquire{HoldNanos: 1}},
	} {
		o := zs.owner(c.form, exclusive)
		o.lock.SendAcquire(c.msg, o)
		o.refused(messages.Reason_INVALID)
	}
	zs.path = "relative"
	o := zs.owner(simplelock.Mutex, exclusive)
	o.acquire()
	o.refused(messages.Reason_INVALID)
}

// The bridge is closed: a holder loses the lock, a waiter is refused, and so is what comes later.
func TestClose(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server, path string) {
		p := open(t, s, path)
		holder, waiter := p.owner(simplelock.Mutex, exclusive), p.owner(simplelock.Mutex, exclusive)
		holder.hold()
		waiter.acquire()
		must(t, p.bridge.Close())
		holder.lost(messages.Reason_CLOSED)
		waiter.refused(messages.Reason_CLOSED)
		waiter.acquire()
		waiter.refused(messages.Reason_STOPPED)
		waitNodes(t, s, path, 0)
	})
}
