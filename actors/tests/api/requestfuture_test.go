package api

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

const cameTooLate = "grant came too late"

// A request by a future without an owner is refused, because no later message could release the
// grant.
func TestFutureWithoutOwner(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		root := all[0].System.Root
		mu := b.Mutex(config)
		to := locktest.PID(b, mu)
		answer, err := root.RequestFuture(to, &messages.Acquire{RequestId: 1}, zktest.TimeLimit).Result()
		locktest.Must(b, err)
		refused, is := answer.(*messages.Refused)
		if !is || refused.Reason != messages.Reason_INVALID || !strings.Contains(refused.Detail, "owner is empty") || !strings.Contains(refused.Detail, "name an owner") {
			b.Errorf("the answer is %T %v", answer, answer)
		}
		generated := messages.LockRef{To: host.Sender{System: all[0].System, PID: to}}
		_, err = generated.Acquire(&messages.Acquire{RequestId: 2}).Wait(locktest.Within(b))
		if !errors.Is(err, actors.ErrInvalid) || !strings.Contains(err.Error(), "name an owner") {
			b.Error(err)
		}
		locktest.Unlock(b, locktest.Lock(b, mu, actors.Try()))
	})
}

// A future that timed out before it was granted the lock does not hold it.
func TestFutureTimesOut(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		var log locktest.Log
		config, all := locktest.OwnerActors(b.T, 1)
		root := all[0].System.Root
		locks := b.Locks(config, log.Config)
		for _, r := range locktest.Exclusive() {
			mu := b.HandleOf(locks, r)
			to := locktest.PID(b, mu)
			g := locktest.Lock(b, mu)
			future := root.RequestFuture(to, &messages.Acquire{RequestId: 1, Owner: "late", Kind: uint32(r.Kind)}, 5*time.Millisecond)
			if err := future.Wait(); !errors.Is(err, actor.ErrTimeout) {
				b.Fatalf("%s: %v", r.Name, err)
			}
			waiting := mu.Acquire(locktest.Within(b))
			locktest.Unlock(b, g)
			locktest.Unlock(b, locktest.Result(b, waiting))
			if lines := log.With(cameTooLate); len(lines) != 1 || !strings.Contains(lines[0], mu.Path()) || !strings.Contains(lines[0], "late") {
				b.Errorf("%s: the log has %q", r.Name, lines)
			}
			log.Take()
		}
		b.WaitNoNode()
	})
}

// A grant that a future gets in time stays, though the lock sends the future more messages.
func TestFutureGranted(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		var log locktest.Log
		config, all := locktest.OwnerActors(b.T, 1)
		root := all[0].System.Root
		mu := b.Mutex(config, log.Config)
		to := locktest.PID(b, mu)
		request := func(msg any) any {
			answer, err := root.RequestFuture(to, msg, zktest.TimeLimit).Result()
			locktest.Must(b, err)
			return answer
		}
		granted, is := request(&messages.Acquire{RequestId: 1, Owner: "me", NotifyContended: true}).(*messages.Granted)
		if !is {
			b.Fatal("not granted")
		}
		waiting := mu.Acquire(locktest.Within(b))
		b.WaitNodes(2)
		_, err := b.Locks().Revoke(locktest.Within(b), granted.Path+"/"+granted.Node, 0)
		locktest.Must(b, err)
		again := request(&messages.Acquire{RequestId: 2, Owner: "me"}) // by now the lock has sent Contended and RevokeRequested
		if _, is := again.(*messages.Granted); !is {
			b.Error(again)
		}
		locktest.Pending(b, waiting)
		for id := range uint64(2) {
			if answer, is := request(&messages.Release{RequestId: id + 1, Owner: "me"}).(*messages.Released); !is {
				b.Errorf("release %d: %v", id+1, answer)
			}
		}
		locktest.Unlock(b, locktest.Result(b, waiting))
		if lines := log.With(cameTooLate); len(lines) > 0 {
			b.Errorf("the log has %q", lines)
		}
	})
}

// The dead letter of a remote future comes back as a message.
func TestRemoteFutureTimesOut(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, w := locktest.NewRemoteOwner(b, "future$1")
		mu := b.Mutex(config)
		g := locktest.Lock(b, mu)
		w.Send(locktest.PID(b, mu), &messages.Acquire{RequestId: 1, Owner: "remote"})
		b.WaitNodes(2)
		w.Ended.Store(true)
		locktest.Unlock(b, g)
		locktest.Unlock(b, locktest.Lock(b, mu))
		if w.Watches.Load() > 0 {
			b.Error("a future is watched, which completes it")
		}
	})
}

// Cancel on a generated future withdraws the request, or releases the grant; so does dropping the
// future.
func TestGeneratedFutureCancelled(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 1)
		mu := b.Mutex(config)
		to := messages.LockRef{To: host.Sender{System: all[0].System, PID: locktest.PID(b, mu)}}
		acquire := func() *ask.Future[*messages.Granted] {
			return to.Acquire(&messages.Acquire{RequestId: 1, Owner: "me"})
		}
		g := locktest.Lock(b, mu)
		waiting := acquire()
		b.WaitNodes(2)
		waiting.Cancel()
		b.WaitNodes(1)
		if _, err := waiting.Result(); !errors.Is(err, ask.ErrCancelled) {
			b.Error(err)
		}
		dropped := acquire()
		b.WaitNodes(2)
		runtime.KeepAlive(dropped)
		locktest.CollectUntil(b, func() bool { return len(b.LockNodes()) == 1 }, "the dropped future's node is deleted")
		locktest.Unlock(b, g)

		held := acquire()
		locktest.Closes(b, held.Done(), "the future")
		b.WaitNodes(1)
		held.Cancel()
		b.WaitNodes(0)

		returned := acquire()
		locktest.Result(b, returned)
		returned.Cancel() // too late: the grant is the caller's
		_, err := mu.Lock(locktest.Within(b), actors.Try())
		locktest.Is(b, err, actors.ErrNotAcquired)
		locktest.Result(b, to.Release(&messages.Release{RequestId: 1, Owner: "me"}))
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(b.LockNodes()) == 0 }, "the node is deleted")
	})
}
