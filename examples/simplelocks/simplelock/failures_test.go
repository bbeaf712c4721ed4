package simplelock_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/examples/simplelocks/simplelock"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A lost session is told to the holder. A waiter is granted in the next session, unless it does not
// want that.
func TestLostSession(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server, path string) {
		p := open(t, s, path)
		holder, waiter := p.owner(simplelock.Mutex, exclusive), p.owner(simplelock.Mutex, exclusive)
		leaves := p.owner(simplelock.Mutex, exclusive)
		g := holder.hold()
		waiter.acquire()
		leaves.lock.SendAcquire(&messages.Acquire{RequestId: 1, FailOnSessionLoss: true}, leaves)
		p.waitSent(embedded.OpGetData, 4) // of the holder's nodes, and of those that wait
		s.Expire(t, g.SessionId)
		if _, lost := (<-holder.inbox).(*messages.Lost); !lost { // it was Suspended before
			holder.lost(messages.Reason_SESSION_LOST)
		}
		leaves.refused(messages.Reason_SESSION_LOST)
		holder.release()
		holder.refused(messages.Reason_NOT_HELD)
		if again := waiter.granted(); again.Epoch <= g.Epoch || again.Czxid <= g.Czxid {
			t.Errorf("%v after %v", again, g)
		}
		waiter.leave()
	})
}

// waitWatches waits until so many of the nodes below the path have a watch, at least.
func waitWatches(t *testing.T, s *zktest.Server, path string, n int) {
	t.Helper()
	zktest.Eventually(t, zktest.TimeLimit, func() bool { return s.WatchesBelow(t, path) >= n }, "%d watches", n)
}

// A process is cut off, as one that has crashed. Its nodes go with its session, and it loses the
// lock before the next one gets it.
func TestCrash(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := zktest.Virtual(t)
		short := func(c *zkbridge.Config) { c.SessionTimeout = 6 * time.Second }
		holder, other := open(t, s, "/lock", short).owner(simplelock.Mutex, exclusive), open(t, s, "/lock", short).owner(simplelock.Mutex, exclusive)
		g := holder.hold()
		other.acquire()
		hole := s.Embedded().Inject(embedded.Fault{Op: embedded.OpAll, Session: g.SessionId, Times: -1, Action: embedded.BlackHole})
		defer hole.Remove()
		next[*messages.Suspended](holder)
		holder.lost(messages.Reason_SESSION_LOST)
		other.none()
		other.granted()
	})
}

// The machine is suspended until the session's deadline has passed, while the nodes are made. No
// grant is made in that session, although the answer arrives before the news of the loss.
func TestSuspendedMachine(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		var suspended atomic.Int64
		s := zktest.Virtual(t)
		p := open(t, s, "/lock", func(c *zkbridge.Config) {
			c.SessionTimeout = 6 * time.Second
			c.SuspendedFor = func() time.Duration { return time.Duration(suspended.Load()) }
		})
		o := p.owner(simplelock.Mutex, exclusive)
		o.hold()
		o.leave()
		waitNodes(t, s, "/lock", 0)
		p.onSend(func(op embedded.Op) {
			if op == embedded.OpMulti {
				suspended.CompareAndSwap(0, int64(time.Hour))
			}
		})
		s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Path: "/lock", Action: embedded.DelayReply, Delay: 10 * time.Millisecond})
		if g := o.hold(); g.Epoch != 2 {
			t.Errorf("%v", g)
		}
		o.leave()
	})
}

// Another client deletes one of the holder's nodes. The holder learns of that, the other node goes,
// and the next contender holds.
func TestDeletedNode(t *testing.T) {
	for name, kind := range map[string]uint32{"lock": exclusive, "W": write, "R": read} {
		for _, deletesOwner := range []bool{false, true} {
			if kind == read && !deletesOwner {
				continue
			}
			t.Run(fmt.Sprintf("%s/owner node %v", name, deletesOwner), func(t *testing.T) {
				each(t, func(t *testing.T, s *zktest.Server, path string) {
					form := simplelock.Form(strings.Replace(name, "R", "W", 1))
					one, other := open(t, s, path).owner(form, kind), open(t, s, path).owner(form, max(kind, exclusive))
					g := one.hold()
					node := name
					if deletesOwner {
						node = g.Node
					}
					must(t, s.Client(t).Delete(path+"/"+node, -1))
					one.lost(messages.Reason_NODE_DELETED)
					other.hold()
					one.release()
					one.refused(messages.Reason_NOT_HELD)
					other.leave()
					one.hold()
					one.leave()
					waitNodes(t, s, path, 0)
				})
			})
		}
	}
}

// A lock node is deleted before its contender has listed the directory, and another contender makes
// the next one. The first must not hold, and must not delete it.
func TestReplacedLockNode(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server, path string) {
		reached, goOn := make(chan struct{}), make(chan struct{})
		p := open(t, s, path)
		var once sync.Once
		p.onSend(func(op embedded.Op) {
			if op == embedded.OpGetChildren2 {
				once.Do(func() { close(reached); <-goOn })
			}
		})
		one, other := p.owner(simplelock.ReadWrite, write), open(t, s, path).owner(simplelock.ReadWrite, write)
		one.acquire()
		<-reached
		must(t, s.Client(t).Delete(path+"/W", -1))
		other.hold()
		close(goOn)
		waitNodes(t, s, path, 2) // its owner node is deleted
		waitWatches(t, s, path, 3)
		one.none()
		other.none()
		other.leave()
		one.granted()
		one.leave()
	})
}

// Data that another client writes into the lock node have no effect.
func TestOverwrittenLockNode(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server, path string) {
		one, other := open(t, s, path).owner(simplelock.Mutex, exclusive), open(t, s, path).owner(simplelock.Mutex, exclusive)
		one.hold()
		other.acquire()
		waitWatches(t, s, path, 3)
		_, err := s.Client(t).Set(path+"/lock", []byte("overwritten"), -1)
		must(t, err)
		waitWatches(t, s, path, 3)
		one.none()
		other.none()
		one.leave()
		other.granted()
		other.leave()
		waitNodes(t, s, path, 0)
	})
}

// Another client has made a persistent lock node. A contender waits for it as for any other.
func TestForeignLockNode(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server, path string) {
		conn, o := s.Client(t), open(t, s, path).owner(simplelock.Mutex, exclusive)
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		_, err = conn.Create(path+"/lock", nil, 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		o.acquire()
		waitWatches(t, s, path, 1)
		must(t, conn.Delete(path+"/lock", -1))
		o.granted()
		o.leave()
	})
}

// The answer to the transaction that makes the nodes is lost, and another client deletes the owner
// node before the contender looks. It deletes its lock node, and does not wait for it.
func TestUnknownOutcome(t *testing.T) {
	for form, kind := range map[simplelock.Form]uint32{simplelock.Mutex: exclusive, simplelock.ReadWrite: write} {
		t.Run(string(form), func(t *testing.T) {
			t.Parallel()
			zktest.Bubble(t, func(t *testing.T) {
				s := zktest.Virtual(t)
				p, conn := open(t, s, "/lock"), s.Client(t)
				o := p.owner(form, kind)
				o.hold()
				o.leave()
				waitNodes(t, s, "/lock", 0)
				hole := s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Path: "/lock/" + string(form), Action: embedded.BlackHoleAfter})
				o.acquire()
				for _, name := range waitNodes(t, s, "/lock", 2) {
					if name != string(form) {
						must(t, conn.Delete("/lock/"+name, -1))
					}
				}
				hole.Remove()
				p.cut()
				o.granted()
				o.leave()
				waitNodes(t, s, "/lock", 0)
			})
		})
	}
}

// Each request to ZooKeeper fails in each way while two processes contend. Both hold as often as
// they ask, one at a time, and no node is left.
func TestFaults(t *testing.T) {
	t.Parallel()
	for form, kinds := range map[simplelock.Form][]uint32{simplelock.Mutex: {exclusive, exclusive}, simplelock.ReadWrite: {write, read}} {
		for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply, embedded.CutAfter, embedded.DelayRequest, embedded.DelayReply,
			embedded.BlackHole, embedded.ExpireSession} {
			t.Run(fmt.Sprintf("%s/%v", form, action), func(t *testing.T) {
				fired := 1
				for nth := 1; fired > 0 && nth <= 40; nth++ {
					zktest.Bubble(t, func(t *testing.T) {
						s := zktest.Virtual(t)
						one, other := open(t, s, "/lock"), open(t, s, "/lock")
						fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpAny, Path: "/lock", Nth: nth, Action: action, Delay: time.Second})
						var l ledger
						if action == embedded.ExpireSession {
							l.ended = func(session int64) bool {
								return slices.ContainsFunc(fault.Firings(), func(f embedded.Firing) bool { return f.Session == session })
							}
						}
						var all errgroup.Group
						all.Go(func() error { return l.useTill(one.owner(form, kinds[0]), 3) })
						all.Go(func() error { return l.useTill(other.owner(form, kinds[1]), 3) })
						if err := all.Wait(); err != nil {
							t.Errorf("fault %d: %v", nth, err)
						}
						fired = len(fault.Firings())
						fault.Remove()
						waitNodes(t, s, "/lock", 0)
					})
				}
			})
		}
	}
}

// useTill acquires a lock until it was held and released so often.
func (l *ledger) useTill(o *owner, times int) error {
	for times > 0 {
		o.acquire()
		var g *messages.Granted
		select {
		case msg := <-o.inbox:
			var granted bool
			if g, granted = msg.(*messages.Granted); !granted {
				return fmt.Errorf("%T %v", msg, msg)
			}
		case <-time.After(time.Hour):
			return fmt.Errorf("a request is never granted")
		}
		if err := l.enter(o.kind, g); err != nil {
			return err
		}
		<-time.After(100 * time.Millisecond) // in virtual time; a session may be lost meanwhile
		l.leave(o.kind)
		o.release()
		for done := false; !done; {
			switch m := (<-o.inbox).(type) {
			case *messages.Released:
				times--
				done = true
			case *messages.Refused: // after a loss
				done = m.Reason == messages.Reason_NOT_HELD
			}
		}
	}
	return nil
}

// Where the generation cannot be read there is no token: the request is refused, and no node is
// left.
func TestWithoutGeneration(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server, path string) {
		chroot := func(c *zkbridge.Config) { c.Servers += path }
		o, conn := open(t, s, "/s", chroot).owner(simplelock.Mutex, exclusive), s.Client(t)
		o.hold()
		o.leave()
		_, err := conn.Create(path+zkbridge.GenerationPath, []byte("7"), 0, zk.WorldACL(zk.PermAll&^zk.PermRead))
		must(t, err)
		other := open(t, s, "/s", chroot).owner(simplelock.Mutex, exclusive)
		other.acquire()
		other.refused(messages.Reason_NO_AUTH)
		waitNodes(t, s, path+"/s", 0)
	})
}
