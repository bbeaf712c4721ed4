package remote_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/access"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// grantOfNodes is a grant of a lock. lock returns it, and a node whose deletion ends it. next asks
// for what another node keeps, if there are several.
type grantOfNodes struct {
	lock func(t *testing.T, l *actors.Locks, o ...actors.Option) (grant *actors.Grant, node string)
	next func(t *testing.T, l *actors.Locks) *actors.Future[*actors.Grant]
}

// severalNodes are the locks of which one grant, or the grants of one owner, have several nodes.
var severalNodes = map[string]grantOfNodes{
	"multi-lock": {
		func(t *testing.T, l *actors.Locks, o ...actors.Option) (*actors.Grant, string) {
			g := lockOf(t, l.MultiLock(l.Mutex("/a"), l.Mutex("/b")), o...)
			return g, g.Nodes()[0]
		},
		func(t *testing.T, l *actors.Locks) *actors.Future[*actors.Grant] {
			return l.Mutex("/b").Acquire(t.Context())
		},
	},
	"multi-lock with a semaphore": {
		func(t *testing.T, l *actors.Locks, o ...actors.Option) (*actors.Grant, string) {
			g := lockOf(t, l.MultiLock(l.Mutex("/a"), l.Semaphore("/s", 1)), o...)
			return g, g.Nodes()[0]
		},
		func(t *testing.T, l *actors.Locks) *actors.Future[*actors.Grant] {
			return l.Semaphore("/s", 1).Acquire(t.Context())
		},
	},
	"several permits": {
		func(t *testing.T, l *actors.Locks, o ...actors.Option) (*actors.Grant, string) {
			g := lockOf(t, l.Semaphore("/s", 3), append(o, actors.Permits(3))...)
			return g, g.Nodes()[1]
		},
		func(t *testing.T, l *actors.Locks) *actors.Future[*actors.Grant] {
			return l.Semaphore("/s", 3).Acquire(t.Context(), actors.Permits(2))
		},
	},
	"local queue": {
		func(t *testing.T, l *actors.Locks, _ ...actors.Option) (*actors.Grant, string) {
			rw := localReadWrite(l)
			write := lockOf(t, rw.Write(), actors.WithOwner("me"))
			read := lockOf(t, rw.Read(), actors.WithOwner("me"))
			if write.Node() == read.Node() {
				t.Fatalf("both grants are by %s", read.Node())
			}
			return read, write.Node()
		},
		func(t *testing.T, l *actors.Locks) *actors.Future[*actors.Grant] {
			return localReadWrite(l).Write().Acquire(t.Context())
		},
	},
}

func localReadWrite(l *actors.Locks) *actors.RWMutex {
	return l.RWMutex("/q", actors.LocalQueue(actors.LocalQueueConfig{}))
}

func lockOf(t *testing.T, l interface {
	Acquire(context.Context, ...actors.Option) *actors.Future[*actors.Grant]
}, o ...actors.Option) *actors.Grant {
	t.Helper()
	g, err := l.Acquire(t.Context(), o...).Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// When another client deletes one node of a grant, the others keep out the next holder until the
// client of the grant has heard of that, or until its lease is over.
func TestOtherNodesOfALostGrant(t *testing.T) {
	sample.OneRaceRunIn(t, 4)
	t.Parallel()
	for name, with := range severalNodes {
		with.loseIn(t, name, func(w *world, node string) {
			if err := w.zk.Client(w.T).Delete(node, -1); err != nil {
				w.Fatal(err)
			}
		})
	}
}

// When the actor of a lock fails in the server, the nodes of its grants keep out the next holder, too.
// The actor of a multi-lock fails with that of a member.
func TestNodesOfAFailedLock(t *testing.T) {
	sample.OneRaceRunIn(t, 4)
	t.Parallel()
	cases := maps.Clone(severalNodes)
	cases["mutex"] = grantOfNodes{
		func(t *testing.T, l *actors.Locks, o ...actors.Option) (*actors.Grant, string) {
			g := lockOf(t, l.Mutex("/m"), o...)
			return g, g.Node()
		},
		func(t *testing.T, l *actors.Locks) *actors.Future[*actors.Grant] {
			return l.Mutex("/m").Acquire(t.Context())
		},
	}
	for name, with := range cases {
		for victim := range 3 {
			if strings.HasPrefix(name, "multi-lock") || victim == 0 {
				with.loseIn(t, fmt.Sprintf("%s, actor %d", name, victim), func(w *world, _ string) {
					var all []*manager.Entry
					for _, r := range access.Manager(w.servers[0].locks).Open() {
						if !slices.Contains(all, r.Entry) {
							all = append(all, r.Entry)
						}
					}
					all[victim].Self.Tell(lock.TakeBack{}) // of no request, which no one sends: the actor panics
				})
			}
		}
	}
}

// loseIn has a client's grant end by lose, while a client of another server waits for a node of the
// grant.
func (with grantOfNodes) loseIn(t *testing.T, name string, lose func(w *world, node string)) {
	for _, cut := range []bool{false, true} {
		for _, owner := range []actors.Option{nil, actors.WithOwner("me")} {
			t.Run(fmt.Sprintf("%s, cut off: %v, named: %v", name, cut, owner != nil), func(t *testing.T) {
				zktest.Bubble(t, func(t *testing.T) {
					w := newWorld(t, 1, "server", "second")
					var clients []*actors.Locks
					for _, server := range w.names {
						w.startServer(server)
						l := w.dial("client of "+server, []string{server})
						clients = append(clients, l)
					}
					g, node := with.lock(t, clients[0], slices.DeleteFunc([]actors.Option{owner}, func(o actors.Option) bool { return o == nil })...)
					next := with.next(t, clients[1])
					<-time.After(time.Second)
					if cut {
						w.cut("server", "client of server", time.Hour)
					}
					lose(w, node)
					begun := time.Now()
					granted, err := next.Wait(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if g.Err() == nil {
						t.Errorf("%v after the loss %v holds beside %v", time.Since(begun), granted, g)
					}
					if took := time.Since(begun); took > 2*leaseTime || !cut && took > leaseTime/2 {
						t.Errorf("the next holder has waited for %v", took)
					}
					w.heal()
					for _, l := range clients {
						if err := l.Close(); err != nil {
							t.Error(err)
						}
					}
					<-time.After(2 * leaseTime)
					for _, s := range w.servers {
						if n := s.server.Clients(); n > 0 {
							t.Errorf("%s has %d clients at the end", s.name, n)
						}
						w.closeServer(s)
					}
				})
			})
		}
	}
}

// A client asks for a multi-lock before it has heard that it has lost another one, which has a member in
// common with the first. It gets the second when it has heard of the loss. The attempt began anew
// without end, within one moment.
func TestMultiLockBesideALostOne(t *testing.T) {
	t.Parallel()
	for _, second := range []string{"a first", "a behind", "with a semaphore", "try", "cancelled"} {
		t.Run(second, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				w := newWorld(t, 1, "server")
				w.startServer("server")
				l := w.dial("client", w.names)
				me := actors.WithOwner("me")
				g := lockOf(t, l.MultiLock(l.Mutex("/a"), l.Mutex("/b")), me, actors.Revocable()) // it watches its nodes from the start
				w.cut("server", "client", time.Hour)
				if err := w.zk.Client(t).Delete(g.Nodes()[0], -1); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Second / 4) // the server hears of it
				members, options := []actors.Member{l.Mutex("/a"), l.Mutex("/c")}, []actors.Option{me}
				switch second {
				case "a behind":
					members = []actors.Member{l.Mutex("/c"), l.Mutex("/a")}
				case "with a semaphore":
					members = []actors.Member{l.Mutex("/a"), l.Semaphore("/s", 1)}
				case "try":
					options = append(options, actors.Try())
				}
				next := l.MultiLock(members...).Acquire(t.Context(), options...)
				<-time.After(time.Second)
				select {
				case <-next.Done():
					t.Error("the second is answered before the client can have heard of anything")
				default:
				}
				if second == "cancelled" {
					next.Cancel()
					<-time.After(time.Second)
				}
				w.heal()
				granted, err := next.Wait(t.Context())
				if second == "cancelled" {
					if !errors.Is(err, actors.ErrCancelled) {
						t.Errorf("the cancelled one: %v", err)
					}
					if err := lockOf(t, l.MultiLock(members...), me).Unlock(t.Context()); err != nil {
						t.Error(err)
					}
				} else if second == "try" {
					if !errors.Is(err, actors.ErrNotAcquired) {
						t.Errorf("the try: %v", err)
					}
				} else if err != nil {
					t.Fatal(err)
				} else if err := granted.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
				if !errors.Is(g.Err(), actors.ErrNodeDeleted) {
					t.Errorf("the first: %v", g.Err())
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				w.closeServer(w.servers[0])
			})
		})
	}
}
