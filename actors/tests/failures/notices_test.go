package failures

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A notice is about a state: of the connection, or of a node. Who holds later, while the state
// lasts, gets it, too.

// An actor that is granted a lock while the connection is lost is told so, and told once.
func TestSuspendedBeforeGrant(t *testing.T) {
	ran, handedOn := map[string]bool{}, map[string]bool{}
	for _, r := range locktest.Recipes {
		t.Run(r.Name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				v.NeedsResumption()
				ran[r.Name] = true
				v.AwaitDeadLetters()
				config, all := locktest.OwnerActors(v.T, 3)
				locks := v.Locks(config)
				to := locktest.PID(v, r.At(locks, v.LockPath))
				acquire := func(a *locktest.OwnerActor) {
					a.Send(to, &messages.Acquire{RequestId: 1, Kind: uint32(r.Kind), Permits: r.Permits})
				}
				for _, a := range all[:2] {
					acquire(a)
					<-time.After(20 * time.Millisecond)
				}
				all[0].Granted(1)
				restore := v.CutOff()
				if n := all[0].Suspended.Load(); n != 1 {
					v.Errorf("the holder got Suspended %d times", n)
				}
				all[0].Send(to, &messages.Release{RequestId: 1})
				acquire(all[2]) // a reader of a local queue is granted at once
				synctest.Wait()
				for _, a := range all[1:] {
					if granted := len(a.Inbox) > 0; granted != (a.Suspended.Load() == 1) {
						v.Errorf("granted without a connection: %v; got Suspended %d times", granted, a.Suspended.Load())
					} else if granted {
						handedOn[r.Name] = true
					}
				}
				restore()
				locktest.WaitState(v, locks, messages.SessionState_CONNECTED)
				all[0].Released(1, 0)
				for _, a := range all[1:] {
					before := a.Suspended.Load()
					a.Granted(1)
					a.Send(to, &messages.Release{RequestId: 1})
					a.Released(1, 0)
					if n := a.Suspended.Load(); n != before {
						v.Error("a holder got Suspended though the connection is back")
					}
				}
			})
		})
	}
	for _, name := range []string{"mutex", "local queue", "write", "local read", "custom", "semaphore", "multi-lock"} {
		if ran[name] && !handedOn[name] {
			t.Errorf("%s was not handed on without a connection, so the test shows nothing", name)
		}
	}
}

// A future that has not been read keeps its grant, though the lock has a notice for its holder at
// the same moment: no connection, a client that asks for the node, or a loss.
func TestFutureKeepsItsGrant(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		v.AwaitDeadLetters()
		config, all := locktest.OwnerActors(v.T, 1)
		locks := v.Locks(config)
		mu := locks.RWMutex(v.LockPath, actors.LocalQueue(actors.LocalQueueConfig{})).Read()
		to, holder := locktest.PID(v, mu), locktest.Lock(v, mu)
		restore := v.CutOff()
		future := all[0].System.Root.RequestFuture(to, &messages.Acquire{RequestId: 1, Kind: uint32(messages.Kind_READ), Owner: "me"}, zktest.TimeLimit)
		<-time.After(time.Minute) // the session is lost
		locktest.Must(v, future.Wait())
		answer, err := future.Result()
		locktest.Must(v, err)
		if _, is := answer.(*messages.Granted); !is {
			v.Errorf("the answer is %T %v", answer, answer)
		}
		locktest.Is(v, holder.Err(), actors.ErrSessionLost)
		restore()
	})
}

// Another client asks for the node of a local queue. The holder releases, and the next owner has a
// node of its own, which the end of the grace does not take away. A node that is not in use is
// released at once.
func TestRevokeOfALocalQueue(t *testing.T) {
	keep := actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Hour})
	for name, at := range map[string]func(*actors.Locks, string) locktest.Handle{
		"mutex": func(l *actors.Locks, path string) locktest.Handle { return l.Mutex(path, keep) },
		"read":  func(l *actors.Locks, path string) locktest.Handle { return l.RWMutex(path, keep).Read() },
		"write": func(l *actors.Locks, path string) locktest.Handle { return l.RWMutex(path, keep).Write() },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				locks, revoker := v.Locks(), v.Locks()
				mu := at(locks, v.LockPath)
				revoke := func(g *actors.Grant) (answer chan error) {
					answer = make(chan error)
					go func() {
						broken, err := revoker.Revoke(v.Context(), g.Node(), 10*time.Second)
						if broken {
							v.Error("the node was deleted, though its holders have released it")
						}
						answer <- err
					}()
					return answer
				}
				first := locktest.Lock(v, mu, actors.WithOwner("me"))
				answer := revoke(first)
				<-first.Revoked()
				next := mu.Acquire(v.Context())
				again := locktest.Lock(v, mu, actors.WithOwner("me"))
				if !locktest.IsClosed(again.Revoked()) {
					v.Error("a later request of the holder is not asked to release")
				}
				locktest.Unlock(v, again)
				locktest.Pending(v, next)
				locktest.Unlock(v, first)
				second := locktest.Result(v, next)
				locktest.Must(v, <-answer)
				if second.Node() == first.Node() {
					v.Error("the next owner has the node for which another client asks")
				}
				locktest.ExpectIncreasing(v, first.Token(), second.Token())
				<-time.After(20 * time.Second)
				if locktest.IsClosed(second.Revoked()) || second.Err() != nil {
					v.Errorf("the next owner: revoked %v, %v", locktest.IsClosed(second.Revoked()), second.Err())
				}
				locktest.Unlock(v, second) // the process keeps the node for a time
				began := time.Now()
				locktest.Must(v, <-revoke(second))
				if took := time.Since(began); took > 3*time.Second {
					v.Errorf("a node that is not in use is released after %v", took)
				}
				v.Clean()
			})
		})
	}
}
