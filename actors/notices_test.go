package actors_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// A notice is about a state: of the connection, or of a node. Who holds later, while the state
// lasts, gets it, too.

// cutOff cuts the connections of all processes, until the returned function is called.
func (v *virtual) cutOff() (restore func()) {
	away := v.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
	v.DropConnections()
	synctest.Wait()
	return away.Remove
}

// awaitDeadLetters has the test wait until protoactor has counted the dead letters, which takes a
// second.
func (v *virtual) awaitDeadLetters() { v.Cleanup(func() { <-time.After(10 * time.Second) }) }

// An actor that is granted a lock while the connection is lost is told so, and told once.
func TestSuspendedBeforeGrant(t *testing.T) {
	handedOn := map[string]bool{}
	for _, r := range recipes {
		t.Run(r.name, func(t *testing.T) {
			bubble(t, func(v *virtual) {
				v.awaitDeadLetters()
				config, all := testActors(v.T, 3)
				locks := v.locks(config)
				to := pid(v, r.at(locks, v.path))
				acquire := func(a *testActor) {
					a.send(to, &messages.Acquire{RequestId: 1, Kind: uint32(r.kind), Permits: r.permits})
				}
				for _, a := range all[:2] {
					acquire(a)
					<-time.After(20 * time.Millisecond)
				}
				all[0].granted(1)
				restore := v.cutOff()
				if n := all[0].suspended.Load(); n != 1 {
					v.Errorf("the holder got Suspended %d times", n)
				}
				all[0].send(to, &messages.Release{RequestId: 1})
				acquire(all[2]) // a reader of a local queue is granted at once
				synctest.Wait()
				for _, a := range all[1:] {
					if granted := len(a.inbox) > 0; granted != (a.suspended.Load() == 1) {
						v.Errorf("granted without a connection: %v; got Suspended %d times", granted, a.suspended.Load())
					} else if granted {
						handedOn[r.name] = true
					}
				}
				restore()
				waitState(v, locks, messages.SessionState_CONNECTED)
				all[0].released(1, 0)
				for _, a := range all[1:] {
					before := a.suspended.Load()
					a.granted(1)
					a.send(to, &messages.Release{RequestId: 1})
					a.released(1, 0)
					if n := a.suspended.Load(); n != before {
						v.Error("a holder got Suspended though the connection is back")
					}
				}
			})
		})
	}
	for _, name := range []string{"mutex", "local queue", "write", "local read", "custom", "semaphore", "multi-lock"} {
		if !handedOn[name] {
			t.Errorf("%s was not handed on without a connection, so the test shows nothing", name)
		}
	}
}

// A future that has not been read keeps its grant, though the lock has a notice for its holder at
// the same moment: no connection, a client that asks for the node, or a loss.
func TestFutureKeepsItsGrant(t *testing.T) {
	bubble(t, func(v *virtual) {
		v.awaitDeadLetters()
		config, all := testActors(v.T, 1)
		locks := v.locks(config)
		mu := locks.RWMutex(v.path, actors.LocalQueue(actors.LocalQueueConfig{})).Read()
		to, holder := pid(v, mu), lock(v, mu)
		restore := v.cutOff()
		future := all[0].system.Root.RequestFuture(to, &messages.Acquire{RequestId: 1, Kind: uint32(messages.Kind_READ), Owner: "me"}, timeLimit)
		<-time.After(time.Minute) // the session is lost
		must(v, future.Wait())
		answer, err := future.Result()
		must(v, err)
		if _, is := answer.(*messages.Granted); !is {
			v.Errorf("the answer is %T %v", answer, answer)
		}
		is(v, holder.Err(), actors.ErrSessionLost)
		restore()
	})
}

// Two singletons of one process: the second is granted the lock while the connection is lost, and
// stops its child.
func TestSingletonsWithoutConnection(t *testing.T) {
	bubble(t, func(v *virtual) {
		v.awaitDeadLetters()
		s := newSingletonTest(v.testLock)
		locks := s.locks(func(cfg *actors.Config) { cfg.StopOnSuspended = true })
		s.spawn("a", locks.Election(s.path))
		first := s.expect("started", "a")
		s.spawn("z", locks.Election(s.path))
		restore := v.cutOff()
		s.expect("stopping", "a")
		close(first.resume)
		s.expect("stopped", "a")
		second := s.expect("started", "z")
		s.expect("stopping", "z")
		close(second.resume)
		s.expect("stopped", "z")
		synctest.Wait()
		s.expectNothing()
		restore()
		third := s.expect("started", "a")
		expectIncreasing(s, first.token, second.token, third.token)
		s.clean()
	})
}

// Another client asks for the node of a local queue. The holder releases, and the next owner has a
// node of its own, which the end of the grace does not take away. A node that is not in use is
// released at once.
func TestRevokeOfALocalQueue(t *testing.T) {
	keep := actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Hour})
	for name, at := range map[string]func(*actors.Locks, string) handle{
		"mutex": func(l *actors.Locks, path string) handle { return l.Mutex(path, keep) },
		"read":  func(l *actors.Locks, path string) handle { return l.RWMutex(path, keep).Read() },
		"write": func(l *actors.Locks, path string) handle { return l.RWMutex(path, keep).Write() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(v *virtual) {
				locks, revoker := v.locks(), v.locks()
				mu := at(locks, v.path)
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
				first := lock(v, mu, actors.WithOwner("me"))
				answer := revoke(first)
				<-first.Revoked()
				next := mu.Acquire(v.Context())
				again := lock(v, mu, actors.WithOwner("me"))
				if !isClosed(again.Revoked()) {
					v.Error("a later request of the holder is not asked to release")
				}
				unlock(v, again)
				pending(v, next)
				unlock(v, first)
				second := result(v, next)
				must(v, <-answer)
				if second.Node() == first.Node() {
					v.Error("the next owner has the node for which another client asks")
				}
				expectIncreasing(v, first.Token(), second.Token())
				<-time.After(20 * time.Second)
				if isClosed(second.Revoked()) || second.Err() != nil {
					v.Errorf("the next owner: revoked %v, %v", isClosed(second.Revoked()), second.Err())
				}
				unlock(v, second) // the process keeps the node for a time
				began := time.Now()
				must(v, <-revoke(second))
				if took := time.Since(began); took > 3*time.Second {
					v.Errorf("a node that is not in use is released after %v", took)
				}
				v.clean()
			})
		})
	}
}
