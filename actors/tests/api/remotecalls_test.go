package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/access"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// remoteUse is the locks of a lock server, and those of the server itself.
type remoteUse struct {
	*locktest.Fixture
	server        *lockServer
	remote, local *actors.Locks
	path          string // of the case
}

// Locks of a lock server have all public methods: each does what it does in a process with
// ZooKeeper, or is refused. A new method needs a case.
func TestCallsOfALockServersLocks(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		u := &remoteUse{Fixture: b, server: newLockServer(b)}
		u.server.mine = func(ask.Recipient) bool { return true } // as it is to the server itself
		u.remote, u.local = u.server.client(b, b.Process()), u.server.locks
		for _, name := range slices.Sorted(maps.Keys(remoteCalls)) {
			u.path = b.LockPath + "-" + strings.ReplaceAll(name, ".", "-")
			remoteCalls[name](u)
		}
		for _, v := range []any{u.remote, u.remote.Mutex("/m"), u.remote.RWMutex("/rw"), u.remote.RWMutex("/rw").Read(), u.remote.Semaphore("/s", 1),
			u.remote.SemaphoreMutex("/sm"), u.remote.MultiLock(), u.remote.Custom("/c", "c", mineRule, "mine"), u.remote.Election("/e"),
			u.remote.SharedCount("/n", 1), &actors.Grant{}, &actors.Term{}} {
			of := reflect.TypeOf(v)
			for i := range of.NumMethod() {
				name := of.Elem().Name() + "." + of.Method(i).Name
				if remoteCalls[name] == nil && remoteCalls["handle."+of.Method(i).Name] == nil && !slices.Contains(withoutServer, name) {
					t.Errorf("%s has no case", name)
				}
			}
		}
	})
}

var mineRule = queue.Rule{Permits: 1, BlockedBy: []queue.KindSet{queue.Kinds(0)}, Markers: []string{"-mine-"}}

// withoutServer are the methods that ask no server, in no process, or that a case of another method
// calls.
var withoutServer = []string{"Locks.Close", "Locks.Election", "Locks.Mutex", "Locks.MultiLock", "Locks.Partitions", "Locks.RWMutex", "Locks.Semaphore", "Locks.SemaphoreMutex",
	"Locks.SharedCount", "RWMutex.Read", "RWMutex.Write", "Custom.Kind", "Election.Path", "Election.Campaign", "Grant.Done", "Grant.Err",
	"Grant.LogValue", "Grant.Node", "Grant.Nodes", "Grant.Path", "Grant.Session", "Grant.String", "Grant.Token", "Term.Context", "Term.Grant",
	"Term.Number", "Term.Resign", "Term.Token"}

// remoteCalls has a case for each method, by its type and name; those of each lock are of the type
// "handle".
var remoteCalls = map[string]func(u *remoteUse){
	"Locks.Inspect": func(u *remoteUse) {
		defer u.hold()()
		same(u, "inspect", func(l *actors.Locks) (actors.Queue, error) { return l.Inspect(u.ctx(), u.path) })
		same(u, "inspect", func(l *actors.Locks) (actors.Queue, error) { return l.Inspect(u.ctx(), "no path") })
	},
	"Locks.FindLocks": func(u *remoteUse) {
		defer u.hold()()
		same(u, "find", func(l *actors.Locks) ([]string, error) { return l.FindLocks(u.ctx(), u.path) })
		same(u, "find", func(l *actors.Locks) ([]string, error) { return l.FindLocks(u.ctx(), "no path") })
	},
	"Locks.Observe": func(u *remoteUse) {
		defer u.hold()()
		same(u, "observe", func(l *actors.Locks) (actors.Queue, error) {
			return u.first(func(ctx context.Context) <-chan actors.Queue { return l.Observe(ctx, u.path) })
		})
		invalid(u, "no path", (<-u.remote.Observe(u.ctx(), "no path")).Err)
	},
	"Locks.ObserveTo": func(u *remoteUse) {
		defer u.hold()()
		same(u, "observe", func(l *actors.Locks) (actors.Queue, error) {
			return u.first(func(ctx context.Context) <-chan actors.Queue {
				queues := make(chan actors.Queue, 10)
				l.ObserveTo(ctx, u.path, access.Manager(l).ActorSystem().Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
					if q, is := c.Message().(actors.Queue); is {
						queues <- q
					}
				})))
				return queues
			})
		})
	},
	"Locks.VerifyToken": func(u *remoteUse) {
		g := locktest.Lock(u, u.remote.Mutex(u.path))
		verify := func(token actors.Token) func(l *actors.Locks) (bool, error) {
			return func(l *actors.Locks) (bool, error) { return true, l.VerifyToken(u.ctx(), g.Node(), token) }
		}
		same(u, "verify-token", verify(g.Token()))
		same(u, "verify-token", verify(actors.Token{Czxid: 1}))
		locktest.Unlock(u, g)
		same(u, "verify-token", verify(g.Token()))
	},
	"Locks.Revoke": func(u *remoteUse) {
		g := locktest.Lock(u, u.remote.Mutex(u.path), actors.Revocable())
		same(u, "revoke", func(l *actors.Locks) (bool, error) { return l.Revoke(u.ctx(), g.Node(), 0) })
		locktest.Closes(u, g.Revoked(), "the holder is asked")
		same(u, "revoke", func(l *actors.Locks) (bool, error) { return l.Revoke(u.ctx(), g.Node(), -1) })
		if broken, err := u.remote.Revoke(u.ctx(), g.Node(), time.Millisecond); !broken || err != nil {
			u.Errorf("broken: %v, %v", broken, err)
		}
		locktest.Closes(u, g.Done(), "the grant is lost")
		g.Release()
	},
	"Locks.Generation": func(u *remoteUse) {
		same(u, "generation", func(l *actors.Locks) (uint64, error) { return l.Generation(u.ctx()) })
	},
	"Locks.Health": func(u *remoteUse) {
		same(u, "health", func(l *actors.Locks) (bool, error) { return true, l.Health(u.ctx()) })
	},
	"Locks.Multi": func(u *remoteUse) { invalid(u, "Verify", locktest.ErrOf(u.remote.Multi(u.ctx()))) },
	"Locks.RaiseGeneration": func(u *remoteUse) {
		invalid(u, "needs a process with a ZooKeeper session", locktest.ErrOf(u.remote.RaiseGeneration(u.ctx())))
	},
	"Locks.Custom": func(u *remoteUse) {
		mu := u.remote.Custom(u.path, "mine", mineRule, "mine").Kind("mine")
		_, lockErr := mu.Lock(u.ctx())
		_, pidErr := mu.PID()
		_, participantsErr := mu.Participants(u.ctx())
		for _, err := range []error{lockErr, pidErr, participantsErr, locktest.ErrOf(u.remote.MultiLock(mu).Lock(u.ctx()))} {
			invalid(u, "use another recipe", err)
		}
	},
	"Custom.VerifyToken": func(u *remoteUse) {
		invalid(u, "use another recipe", u.remote.Custom(u.path, "mine", mineRule, "mine").VerifyToken(u.ctx(), u.path+"/a-lock-0000000001", actors.Token{}))
	},
	"Locks.Session":  func(u *remoteUse) { u.connected(u.remote.Session().State) },
	"Locks.Sessions": func(u *remoteUse) { u.connected((<-u.remote.Sessions(u.ctx())).State) },
	"Locks.Stats":    func(u *remoteUse) { u.connected(u.remote.Stats().Session.State) },
	"Locks.SetServers": func(u *remoteUse) {
		locktest.Must(u, u.remote.SetServers(u.Addr()))
		invalid(u, "", u.remote.SetServers(""))
	},
	"Locks.OpenRequests": func(u *remoteUse) {
		defer u.hold()()
		if open := u.remote.OpenRequests(); !slices.ContainsFunc(open, func(r actors.OpenRequest) bool { return r.Path == u.path }) {
			u.Errorf("open: %v", open)
		}
	},
	"Locks.Drain": func(u *remoteUse) { locktest.Must(u, u.server.client(u.Fixture, u.Process()).Drain(u.ctx())) },

	"handle.Participants": func(u *remoteUse) {
		u.eachLock(func(at func(l *actors.Locks) anyLock) {
			g := locktest.Lock(u, at(u.remote))
			same(u, "participants", func(l *actors.Locks) ([]actors.Participant, error) { return at(l).Participants(u.ctx()) })
			locktest.Unlock(u, g)
		})
	},
	"handle.RevokeHolders": func(u *remoteUse) {
		u.eachLock(func(at func(l *actors.Locks) anyLock) {
			g := locktest.Lock(u, at(u.remote))
			same(u, "revoke-holders", func(l *actors.Locks) (int, error) { return at(l).RevokeHolders(u.ctx(), 0) })
			locktest.Unlock(u, g)
		})
	},
	"Grant.Verify": func(u *remoteUse) {
		u.eachLock(func(at func(l *actors.Locks) anyLock) {
			g := locktest.Lock(u, at(u.remote))
			before := u.server.count("verify")
			locktest.Must(u, g.Verify(u.ctx()))
			if u.server.count("verify") == before {
				u.Error("Verify has not asked the lock server")
			}
			locktest.Unlock(u, g)
			locktest.Is(u, g.Verify(u.ctx()), actors.ErrNotHeld)
		})
	},
	"Grant.Guard": func(u *remoteUse) {
		g := locktest.Lock(u, u.remote.Mutex(u.path))
		locktest.Must(u, locktest.ErrOf(u.local.Multi(u.ctx(), g.Guard()...)))
		locktest.Unlock(u, g)
	},
	"Grant.Context": func(u *remoteUse) {
		g := locktest.Lock(u, u.remote.Mutex(u.path))
		locktest.Must(u, g.Context(u.ctx()).Err())
		locktest.Unlock(u, g)
	},
	"Grant.Revoked": func(u *remoteUse) {
		mu := u.remote.Mutex(u.path)
		g := locktest.Lock(u, mu, actors.Revocable())
		locktest.Must(u, locktest.ErrOf(mu.RevokeHolders(u.ctx(), 0)))
		locktest.Closes(u, g.Revoked(), "the holder is asked")
		locktest.Unlock(u, g)
	},
	"Grant.Release": func(u *remoteUse) {
		locktest.Result(u, locktest.Lock(u, u.remote.Mutex(u.path)).Release())
	},
	"Grant.Unlock": func(u *remoteUse) { locktest.Unlock(u, locktest.Lock(u, u.remote.Mutex(u.path))) },
	"handle.Lock": func(u *remoteUse) {
		u.eachLock(func(at func(l *actors.Locks) anyLock) { locktest.Unlock(u, locktest.Lock(u, at(u.remote))) })
	},
	"handle.Acquire": func(u *remoteUse) {
		u.eachLock(func(at func(l *actors.Locks) anyLock) {
			locktest.Unlock(u, locktest.Result(u, at(u.remote).Acquire(u.ctx())))
		})
	},
	"handle.HeldHere": func(u *remoteUse) {
		u.eachLock(func(at func(l *actors.Locks) anyLock) {
			g := locktest.Lock(u, at(u.remote))
			if !at(u.remote).HeldHere() {
				u.Errorf("%s is not held", g.Path())
			}
			locktest.Unlock(u, g)
		})
	},
	"handle.PID": func(u *remoteUse) {
		u.eachLock(func(at func(l *actors.Locks) anyLock) { locktest.Must(u, locktest.ErrOf(at(u.remote).PID())) })
	},
	"handle.Path": func(u *remoteUse) { u.eachLock(func(at func(l *actors.Locks) anyLock) { _ = at(u.remote).Path() }) },
	"Semaphore.Remaining": func(u *remoteUse) {
		for _, options := range [][]actors.LockOption{nil, {actors.SharedPermits(u.path + "-count")}} {
			remaining := func(l *actors.Locks) (int, error) { return l.Semaphore(u.path, 3, options...).Remaining(u.ctx()) }
			same(u, "remaining", remaining)
			same(u, "remaining", func(l *actors.Locks) (int, error) { return l.Semaphore("no path", 3, options...).Remaining(u.ctx()) })
		}
	},

	"Election.Participants": func(u *remoteUse) {
		u.lead(func() {
			same(u, "participants", func(l *actors.Locks) ([]actors.Participant, error) { return u.election(l).Participants(u.ctx()) })
		})
	},
	"Election.Leader": func(u *remoteUse) {
		leader := func(l *actors.Locks) (actors.Participant, error) { return u.election(l).Leader(u.ctx()) }
		same(u, "participants", leader)
		locktest.Is(u, locktest.ErrOf(leader(u.remote)), actors.ErrNoLeader)
		u.lead(func() { same(u, "participants", leader) })
	},
	"Election.Observe": func(u *remoteUse) {
		u.lead(func() {
			same(u, "observe", func(l *actors.Locks) (actors.Queue, error) { return u.first(u.election(l).Observe) })
		})
	},
	"Election.Singleton": func(u *remoteUse) { _ = u.election(u.remote).Singleton(nil) },

	"SharedCount.Get": func(u *remoteUse) {
		get := func(l *actors.Locks) (actors.Count, error) { return l.SharedCount(u.path, 7).Get(u.ctx()) }
		same(u, "count", get)
		locktest.Must(u, u.local.SharedCount(u.path, 7).Set(u.ctx(), 5))
		same(u, "count", get)
		same(u, "count", func(l *actors.Locks) (actors.Count, error) { return l.SharedCount("/", 7).Get(u.ctx()) })
	},
	"SharedCount.Set": func(u *remoteUse) {
		tooLarge := math.MaxInt32 // on 64 bits
		tooLarge++
		for _, value := range []int{3, 4, tooLarge} {
			same(u, "set-count", func(l *actors.Locks) (bool, error) { return true, l.SharedCount(u.path, 7).Set(u.ctx(), value) })
		}
		if now, err := u.local.SharedCount(u.path, 7).Get(u.ctx()); now.Value != 4 || now.Version != 3 {
			u.Errorf("%v, %v", now, err)
		}
	},
	"SharedCount.TrySet": func(u *remoteUse) {
		count := u.remote.SharedCount(u.path, 7)
		seen := actors.Count{Version: 99}
		for _, value := range []int{3, 4} {
			now, err := count.Get(u.ctx())
			locktest.Must(u, err)
			if set, err := count.TrySet(u.ctx(), now, value); !set || err != nil {
				u.Errorf("%d: %v, %v", value, set, err)
			}
			if set, err := count.TrySet(u.ctx(), seen, 100); set || err != nil {
				u.Errorf("again: %v, %v", set, err)
			}
			seen = now
		}
	},
}

func (u *remoteUse) ctx() context.Context { return locktest.Within(u) }

// hold holds the lock of the case by the lock server, until the returned function is called.
func (u *remoteUse) hold() (release func()) {
	g := locktest.Lock(u, u.remote.Mutex(u.path), actors.WithOwner("me"))
	return func() { locktest.Unlock(u, g) }
}

func (u *remoteUse) election(l *actors.Locks) *actors.Election {
	return l.Election(u.path, actors.LeaderLatchNodes(), actors.AsID("me"))
}

// lead calls f while a participant of the lock server leads.
func (u *remoteUse) lead(f func()) {
	for _, err := range u.election(u.remote).Campaign(u.ctx()) {
		locktest.Must(u, err)
		f()
		return
	}
}

// first returns what an observer sees first.
func (u *remoteUse) first(observe func(ctx context.Context) <-chan actors.Queue) (actors.Queue, error) {
	ctx, cancel := context.WithCancel(u.ctx())
	defer cancel()
	q, _ := locktest.Receive(u, observe(ctx), "the queue")
	return q, q.Err
}

func (u *remoteUse) connected(s messages.SessionState) {
	if s != messages.SessionState_CONNECTED {
		u.Error(s)
	}
}

type anyLock interface {
	locktest.Handle
	Participants(ctx context.Context) ([]actors.Participant, error)
	RevokeHolders(ctx context.Context, grace time.Duration) (int, error)
	HeldHere(owners ...actors.Owner) bool
}

// eachLock calls f for each recipe that a lock server knows.
func (u *remoteUse) eachLock(f func(at func(l *actors.Locks) anyLock)) {
	for _, r := range locktest.Recipes {
		if r.Name != "custom" {
			f(func(l *actors.Locks) anyLock { return r.At(l, u.path+"-"+r.Name).(anyLock) })
		}
	}
}

// same checks that a call has the same result by the lock server and in it, and that it has asked
// the server once.
func same[V any](u *remoteUse, kind string, call func(l *actors.Locks) (V, error)) {
	u.Helper()
	before := u.server.count(kind)
	remote, remoteErr := call(u.remote)
	asked := u.server.count(kind) - before
	local, localErr := call(u.local)
	if got, want := text(remote), text(local); got != want || fmt.Sprint(remoteErr) != fmt.Sprint(localErr) {
		u.Errorf("%s by a lock server: %s, %v; in it: %s, %v", kind, got, remoteErr, want, localErr)
	}
	for r := range messages.Reason_name {
		if reason := messages.Reason(r); errors.Is(remoteErr, reason) != errors.Is(localErr, reason) {
			u.Errorf("%s: %v is not both %v and %v", kind, reason, remoteErr, localErr)
		}
	}
	if asked != 1 && remoteErr == nil {
		u.Errorf("%s was asked %d times", kind, asked)
	}
}

// heldSince is an instant of the server's clock, which is read anew, and differs by nanoseconds.
var heldSince = regexp.MustCompile(`"HeldSince":"2[^"]*"`)

func text(v any) string {
	t, err := json.Marshal(v)
	return heldSince.ReplaceAllString(string(t), `"HeldSince":known`) + fmt.Sprint(err)
}

// invalid checks that a call is refused with a text that says what to do.
func invalid(u *remoteUse, says string, err error) {
	u.Helper()
	if !errors.Is(err, actors.ErrInvalid) || !strings.Contains(err.Error(), says) {
		u.Errorf("%v: want invalid with %q", err, says)
	}
}
