package actors_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// revoke is the data that Curator's Revoker writes.
var revoke = []byte("__REVOKE__")

// Curator's testRevoking: another client writes the request to release. The holder gets it and
// releases, and the next contender holds.
func TestRevokingByHand(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		one, two := b.mutex(), b.mutex()
		g := lock(b, one)
		f := two.Acquire(within(b))
		b.waitNodes(2)
		pending(b, f)
		_, err := conn.Set(g.Node(), revoke, -1) // before the holder watches its node
		must(b, err)
		closes(b, g.Revoked(), "the wait for the request")
		pending(b, f)
		if g.Err() != nil {
			b.Errorf("the grant has ended: %v", g.Err())
		}
		unlock(b, g)
		unlock(b, result(b, f))
	})
}

func TestRevoke(t *testing.T) {
	each(t, func(b *testLock) {
		conn, revoker := b.Client(b), b.locks()
		mu, me := b.mutex(), actors.WithOwner("me")
		g := lock(b, mu, me, actors.Revocable(), actors.WithData([]byte("mine")))
		again := lock(b, mu, me)
		for range 3 {
			broken, err := revoker.Revoke(within(b), g.Node(), 0)
			if broken || err != nil {
				b.Errorf("broken %v, %v", broken, err)
			}
			closes(b, g.Revoked(), "the wait for the request")
			closes(b, again.Revoked(), "the wait of the other request of the owner")
			zktest.Eventually(b, timeLimit, func() bool {
				data, _, err := conn.Get(g.Node())
				return err == nil && string(data) == "mine"
			}, "the node's data is back")
		}
		late := lock(b, mu, me)
		closes(b, late.Revoked(), "the wait of a later request of the owner")
		next := mu.Acquire(within(b))
		b.waitNodes(2)
		for _, g := range []*actors.Grant{g, late, again} {
			if isClosed(g.Done()) {
				b.Error("a grant has ended")
			}
			unlock(b, g)
		}
		h := result(b, next)
		if isClosed(h.Revoked()) {
			b.Error("the next holder has the request to the last one")
		}
		broken, err := revoker.Revoke(within(b), g.Node(), time.Minute) // of a deleted node
		if broken || err != nil {
			b.Errorf("broken %v, %v", broken, err)
		}
		unlock(b, h)
	})
}

// The request to release comes while the contender waits.
func TestRevokeWaiting(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		holder, mu := b.mutex(), b.mutex()
		g := lock(b, holder)
		first, second := mu.Acquire(within(b)), mu.Acquire(within(b), actors.Revocable())
		b.waitNodes(3)
		for _, name := range b.nodes() {
			if path := b.path + "/" + name; path != g.Node() {
				_, err := conn.Set(path, revoke, -1)
				must(b, err)
			}
		}
		unlock(b, g)
		for _, f := range []*actors.Future[*actors.Grant]{first, second} {
			h := result(b, f)
			closes(b, h.Revoked(), "the wait for the request")
			unlock(b, h)
		}
	})
}

// Revoke deletes the node of a holder that does not release in time.
func TestRevokeGrace(t *testing.T) {
	t.Parallel()
	const grace = 10 * time.Second
	for name, release := range map[string]time.Duration{"in time": 3 * time.Second, "not": time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(v *virtual) {
				revoker := v.locks()
				next := revoker.Mutex(v.path)
				mu := v.mutex()
				g := lock(v, mu, actors.Revocable())
				f := next.Acquire(context.Background())
				go func() {
					<-g.Revoked()
					<-time.After(release)
					g.Release()
				}()
				since := time.Now()
				broken, err := revoker.Revoke(context.Background(), g.Node(), grace)
				must(v, err)
				if took := time.Since(since); broken != (release > grace) || took != min(grace, release) {
					v.Errorf("broken %v after %v", broken, took)
				}
				closes(v, g.Done(), "the grant")
				if broken {
					is(v, g.Err(), actors.ErrNodeDeleted)
				}
				unlock(v, result(v, f))
				<-time.After(release)
				v.clean()
			})
		})
	}
}

// Revoke goes on after the loss of its session, of its connection and of answers. Its context, or
// Close, ends it.
func TestRevokeThroughFaults(t *testing.T) {
	t.Parallel()
	for _, op := range []embedded.Op{embedded.OpMulti, embedded.OpGetData} {
		for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply, embedded.CutAfter} {
			bubble(t, func(v *virtual) {
				revoker := v.locks()
				mu := v.mutex()
				g := lock(v, mu, actors.Revocable())
				v.Inject(embedded.Fault{Op: op, Action: action, Session: revoker.Session().ID, Times: 2})
				done := make(chan bool)
				go func() {
					broken, err := revoker.Revoke(context.Background(), g.Node(), time.Minute)
					must(v, err)
					done <- broken
				}()
				<-g.Revoked()
				<-time.After(10 * time.Second)
				v.Expire(revoker.Session().ID)
				<-time.After(10 * time.Second)
				since := time.Now()
				unlock(v, g)
				if broken := <-done; broken || time.Since(since) > 0 {
					v.Errorf("%v %v: broken %v, after %v", op, action, broken, time.Since(since))
				}
				v.clean()
			})
		}
	}
	bubble(t, func(v *virtual) {
		revoker := v.locks()
		mu := v.mutex()
		g := lock(v, mu)
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errEnough)
		defer cancel()
		_, err := revoker.Revoke(ctx, g.Node(), time.Minute)
		is(v, err, errEnough)
		<-time.After(time.Hour)
		if g.Err() != nil || !isClosed(g.Revoked()) {
			v.Errorf("%v, revoked %v", g.Err(), isClosed(g.Revoked()))
		}
		closing := make(chan error)
		go func() {
			_, err := revoker.Revoke(context.Background(), g.Node(), time.Hour)
			closing <- err
		}()
		<-time.After(time.Second)
		must(v, revoker.Close())
		is(v, <-closing, actors.ErrClosed)
		unlock(v, g)
		v.clean()
	})
}

func TestRevokeHolders(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks()
		mu := locks.Mutex(v.path)
		broken, err := mu.RevokeHolders(within(v), time.Second)
		if broken != 0 || err != nil {
			v.Errorf("without a holder: %d, %v", broken, err)
		}
		rw := locks.RWMutex("/rw")
		var readers []*actors.Grant
		for range 3 {
			g, err := rw.Read().Lock(within(v), actors.Revocable())
			must(v, err)
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
			closes(v, readers[i].Done(), "the grant")
			is(v, readers[i].Err(), actors.ErrNodeDeleted)
			readers[i].Release()
		}
		g := result(v, writer)
		<-time.After(5 * time.Second)
		if isClosed(g.Revoked()) {
			v.Error("the writer did not hold")
		}
		unlock(v, g)
		v.clean()
	})
}

func TestRevokeInvalid(t *testing.T) {
	onEmbedded(t, func(b *testLock) {
		locks, conn := b.locks(), b.Client(b)
		g := lock(b, locks.Mutex(b.path))
		for _, node := range []string{"", "/", b.path, b.path + "/", b.path + "/unknown", "a-lock-0000000001", "/a//b-lock-0000000001"} {
			_, err := locks.Revoke(within(b), node, 0)
			is(b, err, actors.ErrInvalid)
			if err != nil && !strings.Contains(err.Error(), node) {
				b.Error(err)
			}
		}
		_, err := locks.Revoke(within(b), g.Node(), -time.Second)
		is(b, err, actors.ErrInvalid)
		if data, _, err := conn.Get(b.path); len(data) > 0 || err != nil {
			b.Errorf("the directory's data is %q, %v", data, err)
		}
		_, err = conn.SetACL(g.Node(), zk.WorldACL(zk.PermRead), -1)
		must(b, err)
		_, err = locks.Revoke(within(b), g.Node(), time.Minute)
		is(b, err, actors.ErrNoAuth)
		unlock(b, g)
	})
}

func TestRevokeMessages(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		locks := b.locks(config)
		lock := pid(b, locks.Mutex(b.path))
		all[0].send(lock, &messages.Acquire{RequestId: 1, Owner: "me", Revocable: true})
		g := all[0].granted(1)
		broken, err := locks.Mutex(b.path).RevokeHolders(within(b), 0)
		if broken != 0 || err != nil {
			b.Errorf("%d are broken, %v", broken, err)
		}
		if m := expectMessage[*messages.RevokeRequested](all[0]); m.GetRequestId() != 1 {
			b.Errorf("%v", m)
		}
		all[0].send(lock, &messages.Acquire{RequestId: 2, Owner: "me"})
		all[0].granted(2)
		if m := expectMessage[*messages.RevokeRequested](all[0]); m.GetRequestId() != 2 {
			b.Errorf("%v", m)
		}
		if broken, err := locks.Revoke(within(b), b.path+"/"+g.GetNode(), time.Millisecond); !broken || err != nil {
			b.Errorf("broken %v, %v", broken, err)
		}
		for range 2 {
			if m := expectMessage[*messages.Lost](all[0]); m.GetReason() != messages.Reason_NODE_DELETED {
				b.Errorf("%v", m)
			}
		}
		for id := range uint64(2) {
			all[0].send(lock, &messages.Release{RequestId: id + 1, Owner: "me"})
			all[0].refused(id+1, messages.Reason_NODE_DELETED)
		}
	})
}

// A holder by several nodes gets one request to release, though each of its nodes is revoked.
func TestRevokeOfSeveralNodes(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		alice, locks, conn := all[0], b.locks(config), b.Client(b)
		semaphore := locks.Semaphore(b.path, 2)
		multi := locks.MultiLock(locks.Mutex(b.path+"-a"), locks.Mutex(b.path+"-b"))
		for id, lock := range []interface{ PID() (*actor.PID, error) }{semaphore, multi} {
			id := uint64(id)
			to, err := lock.PID()
			must(b, err)
			alice.send(to, &messages.Acquire{RequestId: id, Permits: uint32(2 - 2*id), Revocable: true, Data: []byte("mine")})
			g := expectMessage[*messages.Granted](alice)
			if len(g.Parts) != 2 {
				b.Fatalf("%v", g)
			}
			for _, part := range g.Parts {
				node := part.Path + "/" + part.Node
				_, err := locks.Revoke(within(b), node, 0)
				must(b, err)
				zktest.Eventually(b, timeLimit, func() bool { // the holder writes the data back
					data, _, err := conn.Get(node)
					return err == nil && string(data) == "mine"
				}, "the data is back")
			}
			if m := expectMessage[*messages.RevokeRequested](alice); m.GetRequestId() != id {
				b.Errorf("%v", m)
			}
			alice.send(to, &messages.Release{RequestId: id})
			alice.released(id, 0)
		}
		b.waitNodes(0, "-a", "-b", "/leases", "/locks")
	})
}

// The request to release comes while a multi-lock has one member and waits for another.
func TestRevokeOfAMultiLockThatWaits(t *testing.T) {
	each(t, func(b *testLock) {
		conn, holder, locks := b.Client(b), b.locks(), b.locks()
		other := b.path + "-other"
		g := lock(b, holder.Mutex(other))
		both := locks.MultiLock(locks.Mutex(b.path), locks.Mutex(other))
		f := both.Acquire(within(b), actors.Revocable())
		b.waitNodes(1)
		_, err := conn.Set(b.path+"/"+b.nodes()[0], revoke, -1)
		must(b, err)
		zktest.Eventually(b, timeLimit, func() bool { // the member has noticed the request, and written the data back
			data, _, err := conn.Get(b.path + "/" + b.nodes()[0])
			return err == nil && string(data) != string(revoke)
		}, "the node's data is back")
		pending(b, f)
		unlock(b, g)
		h := result(b, f)
		closes(b, h.Revoked(), "the wait for the request")
		unlock(b, h)
	})
}
