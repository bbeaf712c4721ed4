package actors_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

const cameTooLate = "grant came too late"

// A request by a future without an owner is refused, because no later message could release the
// grant.
func TestFutureWithoutOwner(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		root := all[0].system.Root
		mu := b.mutex(config)
		to := pid(b, mu)
		answer, err := root.RequestFuture(to, &messages.Acquire{RequestId: 1}, timeLimit).Result()
		must(b, err)
		refused, is := answer.(*messages.Refused)
		if !is || refused.Reason != messages.Reason_INVALID || !strings.Contains(refused.Detail, "owner is empty") || !strings.Contains(refused.Detail, "name an owner") {
			b.Errorf("the answer is %T %v", answer, answer)
		}
		generated := messages.LockRef{To: host.Sender{System: all[0].system, PID: to}}
		_, err = generated.Acquire(&messages.Acquire{RequestId: 2}).Wait(within(b))
		if !errors.Is(err, actors.ErrInvalid) || !strings.Contains(err.Error(), "name an owner") {
			b.Error(err)
		}
		unlock(b, lock(b, mu, actors.Try()))
	})
}

// A future that timed out before it was granted the lock does not hold it.
func TestFutureTimesOut(t *testing.T) {
	each(t, func(b *testLock) {
		var log logs
		config, all := testActors(b.T, 1)
		root := all[0].system.Root
		locks := b.locks(config, log.config)
		for _, r := range exclusive() {
			mu := b.handle(locks, r)
			to := pid(b, mu)
			g := lock(b, mu)
			future := root.RequestFuture(to, &messages.Acquire{RequestId: 1, Owner: "late", Kind: uint32(r.kind)}, 5*time.Millisecond)
			if err := future.Wait(); !errors.Is(err, actor.ErrTimeout) {
				b.Fatalf("%s: %v", r.name, err)
			}
			waiting := mu.Acquire(within(b))
			unlock(b, g)
			unlock(b, result(b, waiting))
			if lines := log.with(cameTooLate); len(lines) != 1 || !strings.Contains(lines[0], mu.Path()) || !strings.Contains(lines[0], "late") {
				b.Errorf("%s: the log has %q", r.name, lines)
			}
			log.take()
		}
		b.waitNoNode()
	})
}

// A grant that a future gets in time stays, though the lock sends the future more messages.
func TestFutureGranted(t *testing.T) {
	each(t, func(b *testLock) {
		var log logs
		config, all := testActors(b.T, 1)
		root := all[0].system.Root
		mu := b.mutex(config, log.config)
		to := pid(b, mu)
		request := func(msg any) any {
			answer, err := root.RequestFuture(to, msg, timeLimit).Result()
			must(b, err)
			return answer
		}
		granted, is := request(&messages.Acquire{RequestId: 1, Owner: "me", NotifyContended: true}).(*messages.Granted)
		if !is {
			b.Fatal("not granted")
		}
		waiting := mu.Acquire(within(b))
		b.waitNodes(2)
		_, err := b.locks().Revoke(within(b), granted.Path+"/"+granted.Node, 0)
		must(b, err)
		again := request(&messages.Acquire{RequestId: 2, Owner: "me"}) // by now the lock has sent Contended and RevokeRequested
		if _, is := again.(*messages.Granted); !is {
			b.Error(again)
		}
		pending(b, waiting)
		for id := range uint64(2) {
			if answer, is := request(&messages.Release{RequestId: id + 1, Owner: "me"}).(*messages.Released); !is {
				b.Errorf("release %d: %v", id+1, answer)
			}
		}
		unlock(b, result(b, waiting))
		if lines := log.with(cameTooLate); len(lines) > 0 {
			b.Errorf("the log has %q", lines)
		}
	})
}

// The dead letter of a remote future comes back as a message.
func TestRemoteFutureTimesOut(t *testing.T) {
	each(t, func(b *testLock) {
		config, w := newRemoteActor(b, "future$1")
		mu := b.mutex(config)
		g := lock(b, mu)
		w.send(pid(b, mu), &messages.Acquire{RequestId: 1, Owner: "remote"})
		b.waitNodes(2)
		w.ended.Store(true)
		unlock(b, g)
		unlock(b, lock(b, mu))
		if w.watches.Load() > 0 {
			b.Error("a future is watched, which completes it")
		}
	})
}

// Cancel on a generated future withdraws the request, or releases the grant; so does dropping the
// future.
func TestGeneratedFutureCancelled(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 1)
		mu := b.mutex(config)
		to := messages.LockRef{To: host.Sender{System: all[0].system, PID: pid(b, mu)}}
		acquire := func() *ask.Future[*messages.Granted] {
			return to.Acquire(&messages.Acquire{RequestId: 1, Owner: "me"})
		}
		g := lock(b, mu)
		waiting := acquire()
		b.waitNodes(2)
		waiting.Cancel()
		b.waitNodes(1)
		if _, err := waiting.Result(); !errors.Is(err, ask.ErrCancelled) {
			b.Error(err)
		}
		dropped := acquire()
		b.waitNodes(2)
		runtime.KeepAlive(dropped)
		collectUntil(b, func() bool { return len(b.nodes()) == 1 }, "the dropped future's node is deleted")
		unlock(b, g)

		held := acquire()
		closes(b, held.Done(), "the future")
		b.waitNodes(1)
		held.Cancel()
		b.waitNodes(0)

		returned := acquire()
		result(b, returned)
		returned.Cancel() // too late: the grant is the caller's
		_, err := mu.Lock(within(b), actors.Try())
		is(b, err, actors.ErrNotAcquired)
		result(b, to.Release(&messages.Release{RequestId: 1, Owner: "me"}))
		zktest.Eventually(b, timeLimit, func() bool { return len(b.nodes()) == 0 }, "the node is deleted")
	})
}
