package recipes

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// revoke is the data that Curator's Revoker writes.
var revoke = []byte("__REVOKE__")

// Curator's testRevoking: another client writes the request to release. The holder gets it and
// releases, and the next contender holds.
func TestRevokingByHand(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		one, two := b.Mutex(), b.Mutex()
		g := locktest.Lock(b, one)
		f := two.Acquire(locktest.Within(b))
		b.WaitNodes(2)
		locktest.Pending(b, f)
		_, err := conn.Set(g.Node(), revoke, -1) // before the holder watches its node
		locktest.Must(b, err)
		locktest.Closes(b, g.Revoked(), "the wait for the request")
		locktest.Pending(b, f)
		if g.Err() != nil {
			b.Errorf("the grant has ended: %v", g.Err())
		}
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Result(b, f))
	})
}

func TestRevoke(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn, revoker := b.Client(b), b.Locks()
		mu, me := b.Mutex(), actors.WithOwner("me")
		g := locktest.Lock(b, mu, me, actors.Revocable(), actors.WithData([]byte("mine")))
		again := locktest.Lock(b, mu, me)
		for range 3 {
			broken, err := revoker.Revoke(locktest.Within(b), g.Node(), 0)
			if broken || err != nil {
				b.Errorf("broken %v, %v", broken, err)
			}
			locktest.Closes(b, g.Revoked(), "the wait for the request")
			locktest.Closes(b, again.Revoked(), "the wait of the other request of the owner")
			zktest.Eventually(b, zktest.TimeLimit, func() bool {
				data, _, err := conn.Get(g.Node())
				return err == nil && string(data) == "mine"
			}, "the node's data is back")
		}
		late := locktest.Lock(b, mu, me)
		locktest.Closes(b, late.Revoked(), "the wait of a later request of the owner")
		next := mu.Acquire(locktest.Within(b))
		b.WaitNodes(2)
		for _, g := range []*actors.Grant{g, late, again} {
			if locktest.IsClosed(g.Done()) {
				b.Error("a grant has ended")
			}
			locktest.Unlock(b, g)
		}
		h := locktest.Result(b, next)
		if locktest.IsClosed(h.Revoked()) {
			b.Error("the next holder has the request to the last one")
		}
		broken, err := revoker.Revoke(locktest.Within(b), g.Node(), time.Minute) // of a deleted node
		if broken || err != nil {
			b.Errorf("broken %v, %v", broken, err)
		}
		locktest.Unlock(b, h)
	})
}

// The request to release comes while the contender waits.
func TestRevokeWaiting(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		holder, mu := b.Mutex(), b.Mutex()
		g := locktest.Lock(b, holder)
		first, second := mu.Acquire(locktest.Within(b)), mu.Acquire(locktest.Within(b), actors.Revocable())
		b.WaitNodes(3)
		for _, name := range b.LockNodes() {
			if path := b.LockPath + "/" + name; path != g.Node() {
				_, err := conn.Set(path, revoke, -1)
				locktest.Must(b, err)
			}
		}
		locktest.Unlock(b, g)
		for _, f := range []*actors.Future[*actors.Grant]{first, second} {
			h := locktest.Result(b, f)
			locktest.Closes(b, h.Revoked(), "the wait for the request")
			locktest.Unlock(b, h)
		}
	})
}

// Revoke deletes the node of a holder that does not release in time.
func TestRevokeGrace(t *testing.T) {
	t.Parallel()
	const grace = 10 * time.Second
	for name, release := range map[string]time.Duration{"in time": 3 * time.Second, "not": time.Hour} {
		t.Run(name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				revoker := v.Locks()
				next := revoker.Mutex(v.LockPath)
				mu := v.Mutex()
				g := locktest.Lock(v, mu, actors.Revocable())
				f := next.Acquire(context.Background())
				go func() {
					<-g.Revoked()
					<-time.After(release)
					g.Release()
				}()
				since := time.Now()
				broken, err := revoker.Revoke(context.Background(), g.Node(), grace)
				locktest.Must(v, err)
				if took := time.Since(since); broken != (release > grace) || took != min(grace, release) {
					v.Errorf("broken %v after %v", broken, took)
				}
				locktest.Closes(v, g.Done(), "the grant")
				if broken {
					locktest.Is(v, g.Err(), actors.ErrNodeDeleted)
				}
				locktest.Unlock(v, locktest.Result(v, f))
				<-time.After(release)
				v.Clean()
			})
		})
	}
}

// Revoke goes on after the loss of its session, of its connection and of answers. Its context, or
// Close, ends it.
func TestRevokeThroughFaults(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a connection to ZooKeeper that the test breaks")
	t.Parallel()
	for _, op := range []embedded.Op{embedded.OpMulti, embedded.OpGetData} {
		for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply, embedded.CutAfter} {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				revoker := v.Locks()
				mu := v.Mutex()
				g := locktest.Lock(v, mu, actors.Revocable())
				v.Inject(embedded.Fault{Op: op, Action: action, Session: revoker.Session().ID, Times: 2})
				done := make(chan bool)
				go func() {
					broken, err := revoker.Revoke(context.Background(), g.Node(), time.Minute)
					if !v.Resumes() && op == embedded.OpMulti && errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) { // the session went with the connection
						<-time.After(locktest.SessionTimeout)
						broken, err = revoker.Revoke(context.Background(), g.Node(), time.Minute)
					}
					locktest.Must(v, err)
					done <- broken
				}()
				<-g.Revoked()
				<-time.After(10 * time.Second)
				v.Expire(revoker.Session().ID)
				<-time.After(10 * time.Second)
				since := time.Now()
				locktest.Unlock(v, g)
				if broken := <-done; broken || time.Since(since) > 0 {
					v.Errorf("%v %v: broken %v, after %v", op, action, broken, time.Since(since))
				}
				v.Clean()
			})
		}
	}
	locktest.Bubble(t, func(v *locktest.Virtual) {
		revoker := v.Locks()
		mu := v.Mutex()
		g := locktest.Lock(v, mu)
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, locktest.ErrEnough)
		defer cancel()
		_, err := revoker.Revoke(ctx, g.Node(), time.Minute)
		locktest.Is(v, err, locktest.ErrEnough)
		<-time.After(time.Hour)
		if g.Err() != nil || !locktest.IsClosed(g.Revoked()) {
			v.Errorf("%v, revoked %v", g.Err(), locktest.IsClosed(g.Revoked()))
		}
		closing := make(chan error)
		go func() {
			_, err := revoker.Revoke(context.Background(), g.Node(), time.Hour)
			closing <- err
		}()
		<-time.After(time.Second)
		locktest.Must(v, revoker.Close())
		locktest.Is(v, <-closing, actors.ErrClosed)
		locktest.Unlock(v, g)
		v.Clean()
	})
}

// The answer to a write of Revoke is lost, and the session before the connection is back: the error says that
// the write may have been done, and another Revoke goes on.
func TestRevokeOutcomeUnknown(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a connection to ZooKeeper that the test breaks")
	t.Parallel()
	for nth, write := range []string{"ask", "delete"} {
		for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply} {
			t.Run(fmt.Sprint(write, " ", action), func(t *testing.T) {
				locktest.Bubble(t, func(v *locktest.Virtual) {
					revoker := v.Locks()
					g := locktest.Lock(v, v.Mutex())
					session := revoker.Session()
					v.Inject(embedded.Fault{Op: embedded.OpMulti, Action: action, Session: session.ID, Nth: nth + 1})
					v.Inject(embedded.Fault{Op: embedded.OpConnect, Action: embedded.ExpireSession, Session: session.ID})
					_, err := revoker.Revoke(context.Background(), g.Node(), time.Second)
					locktest.Is(v, err, messages.Reason_OUTCOME_UNKNOWN)
					locktest.Is(v, err, actors.ErrSessionLost)
					v.WaitNewSession(revoker, session)
					broken, err := revoker.Revoke(context.Background(), g.Node(), time.Second)
					if done := write == "delete" && action == embedded.DropReply; err != nil || broken == done {
						v.Errorf("broken %v, %v", broken, err)
					}
					locktest.Closes(v, g.Done(), "the grant")
					v.Clean()
				})
			})
		}
	}
}

func TestRevokeHolders(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		mu := locks.Mutex(v.LockPath)
		broken, err := mu.RevokeHolders(locktest.Within(v), time.Second)
		if broken != 0 || err != nil {
			v.Errorf("without a holder: %d, %v", broken, err)
		}
		rw := locks.RWMutex("/rw")
		var readers []*actors.Grant
		for range 3 {
			g, err := rw.Read().Lock(locktest.Within(v), actors.Revocable())
			locktest.Must(v, err)
			readers = append(readers, g)
		}
		writer := rw.Write().Acquire(context.Background())
		go func() {
			<-readers[1].Revoked()
			<-time.After(time.Second)
			readers[1].Release()
		}()
		since := time.Now()
		broken, err = rw.Write().RevokeHolders(context.Background(), 5*time.Second)
		if took := time.Since(since); broken != 2 || err != nil || took != 5*time.Second {
			v.Errorf("%d are broken after %v, %v", broken, took, err)
		}
		for _, i := range []int{0, 2} {
			locktest.Closes(v, readers[i].Done(), "the grant")
			locktest.Is(v, readers[i].Err(), actors.ErrNodeDeleted)
			readers[i].Release()
		}
		g := locktest.Result(v, writer)
		<-time.After(5 * time.Second)
		if locktest.IsClosed(g.Revoked()) {
			v.Error("the writer did not hold")
		}
		locktest.Unlock(v, g)
		v.Clean()
	})
}

func TestRevokeInvalid(t *testing.T) {
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
		locks, conn := b.Locks(), b.Client(b)
		g := locktest.Lock(b, locks.Mutex(b.LockPath))
		locktest.Is(b, locktest.ErrOf(locks.Revoke(locktest.Within(b), b.LockPath, 0)), actors.ErrInvalid)
		if data, _, err := conn.Get(b.LockPath); len(data) > 0 || err != nil {
			b.Errorf("the directory's data is %q, %v", data, err)
		}
		_, err := conn.SetACL(g.Node(), zk.WorldACL(zk.PermRead), -1)
		locktest.Must(b, err)
		_, err = locks.Revoke(locktest.Within(b), g.Node(), time.Minute)
		locktest.Is(b, err, actors.ErrNoAuth)
		locktest.Unlock(b, g)
	})
}

func TestRevokeMessages(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		locks := b.Locks(config)
		lock := locktest.PID(b, locks.Mutex(b.LockPath))
		all[0].Send(lock, &messages.Acquire{RequestId: 1, Owner: "me", Revocable: true})
		g := all[0].Granted(1)
		broken, err := locks.Mutex(b.LockPath).RevokeHolders(locktest.Within(b), 0)
		if broken != 0 || err != nil {
			b.Errorf("%d are broken, %v", broken, err)
		}
		if m := locktest.ExpectMessage[*messages.RevokeRequested](all[0]); m.GetRequestId() != 1 {
			b.Errorf("%v", m)
		}
		all[0].Send(lock, &messages.Acquire{RequestId: 2, Owner: "me"})
		all[0].Granted(2)
		if m := locktest.ExpectMessage[*messages.RevokeRequested](all[0]); m.GetRequestId() != 2 {
			b.Errorf("%v", m)
		}
		if broken, err := locks.Revoke(locktest.Within(b), b.LockPath+"/"+g.GetNode(), time.Millisecond); !broken || err != nil {
			b.Errorf("broken %v, %v", broken, err)
		}
		for range 2 {
			if m := locktest.ExpectMessage[*messages.Lost](all[0]); m.GetReason() != messages.Reason_NODE_DELETED {
				b.Errorf("%v", m)
			}
		}
		for id := range uint64(2) {
			all[0].Send(lock, &messages.Release{RequestId: id + 1, Owner: "me"})
			all[0].Refused(id+1, messages.Reason_NODE_DELETED)
		}
	})
}

// A holder by several nodes gets one request to release, though each of its nodes is revoked.
func TestRevokeOfSeveralNodes(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		alice, locks, conn := all[0], b.Locks(config), b.Client(b)
		semaphore := locks.Semaphore(b.LockPath, 2)
		multi := locks.MultiLock(locks.Mutex(b.LockPath+"-a"), locks.Mutex(b.LockPath+"-b"))
		for id, lock := range []interface{ PID() (*actor.PID, error) }{semaphore, multi} {
			id := uint64(id)
			to, err := lock.PID()
			locktest.Must(b, err)
			alice.Send(to, &messages.Acquire{RequestId: id, Permits: uint32(2 - 2*id), Revocable: true, Data: []byte("mine")})
			g := locktest.ExpectMessage[*messages.Granted](alice)
			if len(g.Parts) != 2 {
				b.Fatalf("%v", g)
			}
			for _, part := range g.Parts {
				node := part.Path + "/" + part.Node
				_, err := locks.Revoke(locktest.Within(b), node, 0)
				locktest.Must(b, err)
				zktest.Eventually(b, zktest.TimeLimit, func() bool { // the holder writes the data back
					data, _, err := conn.Get(node)
					return err == nil && string(data) == "mine"
				}, "the data is back")
			}
			if m := locktest.ExpectMessage[*messages.RevokeRequested](alice); m.GetRequestId() != id {
				b.Errorf("%v", m)
			}
			alice.Send(to, &messages.Release{RequestId: id})
			alice.Released(id, 0)
		}
		b.WaitNodes(0, "-a", "-b", "/leases", "/locks")
	})
}

// The request to release comes while a multi-lock has one member and waits for another.
func TestRevokeOfAMultiLockThatWaits(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		conn, holder, locks := b.Client(b), b.Locks(), b.Locks()
		other := b.LockPath + "-other"
		g := locktest.Lock(b, holder.Mutex(other))
		both := locks.MultiLock(locks.Mutex(b.LockPath), locks.Mutex(other))
		f := both.Acquire(locktest.Within(b), actors.Revocable())
		b.WaitNodes(1)
		_, err := conn.Set(b.LockPath+"/"+b.LockNodes()[0], revoke, -1)
		locktest.Must(b, err)
		zktest.Eventually(b, zktest.TimeLimit, func() bool { // the member has noticed the request, and written the data back
			data, _, err := conn.Get(b.LockPath + "/" + b.LockNodes()[0])
			return err == nil && string(data) != string(revoke)
		}, "the node's data is back")
		locktest.Pending(b, f)
		locktest.Unlock(b, g)
		h := locktest.Result(b, f)
		locktest.Closes(b, h.Revoked(), "the wait for the request")
		locktest.Unlock(b, h)
	})
}
