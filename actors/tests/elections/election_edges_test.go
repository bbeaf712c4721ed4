package elections

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// An id over MaxNodeData is a final error, though requests over other limits are repeated.
func TestElectionWithTooLongAnID(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks(func(cfg *actors.Config) { cfg.MaxNodeData = 3 })
		b.Campaign(locks.Election(b.LockPath, actors.AsID("four"))).Fails(actors.ErrLimit)
		b.Campaign(locks.Election(b.LockPath, actors.AsID("two"))).Leads()
	})
}

// The nodes of LeaderSelector and of LeaderLatch do not exclude each other. A process refuses the
// second form, and logs an error if another process has it.
func TestElectionFormsDoNotMix(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		var log locktest.Log
		locks := b.Locks()
		b.Campaign(locks.Election(b.LockPath)).Leads()
		b.Campaign(locks.Election(b.LockPath, actors.LeaderLatchNodes())).Fails(actors.ErrInvalid)
		b.Campaign(b.Locks(log.Config).Election(b.LockPath, actors.LeaderLatchNodes())).Leads()
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(log.With("two recipes use one path")) == 1 }, "a line of the log")
	})
}

// A body that ends its goroutine, as testing's FailNow does, resigns, too.
func TestBodyEndsItsGoroutine(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		e, ended := b.Locks().Election(b.LockPath), make(chan struct{})
		go func() {
			defer close(ended)
			for _, err := range e.Campaign(locktest.Within(b)) {
				locktest.Must(b, err)
				runtime.Goexit()
			}
		}()
		locktest.Closes(b, ended, "the goroutine")
		if nodes := b.LockNodes(); len(nodes) > 0 {
			b.Errorf("nodes %v are left", nodes)
		}
	})
}

// ZooKeeper refuses to delete the leader's node: the campaign ends with the error, and does not
// wait behind its own node.
func TestResigningWithoutTheRight(t *testing.T) {
	locktest.NeedsZooKeeper(t, "a session that ends with the locks")
	locktest.Each(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		locktest.Must(b, conn.AddAuth("digest", []byte("admin:secret")))
		acl := append(zk.DigestACL(zk.PermAll, "admin", "secret"), zk.WorldACL(zk.PermRead|zk.PermWrite|zk.PermCreate)...)
		_, err := conn.Create(b.LockPath, nil, zk.FlagPersistent, acl)
		locktest.Must(b, err)
		locks := b.Locks()
		c := b.Campaign(locks.Election(b.LockPath))
		c.Leads()
		c.Resigns()
		c.Fails(actors.ErrNoAuth)
		locktest.Must(b, locks.Close())
		b.WaitNodes(0)
		locktest.Must(b, conn.Delete(b.LockPath, -1))
	})
}

// The leader resigns without an answer from ZooKeeper, which blocks until ZooKeeper answers or the
// session is lost. Then the campaign goes on, or ends with its context.
func TestResigningWithoutZooKeeper(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		c := locktest.NewLedger(v).Campaign(locks.Election("/lock"))
		c.Leads()
		v.Halt()
		c.Resigns()
		<-time.After(time.Second)
		c.Waits()
		v.Restart()
		if term := c.Leads(); term.Number() != 2 || locks.Session().Epoch != 1 {
			v.Errorf("term %d in session %d", term.Number(), locks.Session().Epoch)
		}
		v.Halt()
		left := time.Now()
		c.Stop()
		locktest.Closes(v, c.Ended, "the campaign")
		if took := time.Since(left); took > locktest.SessionTimeout {
			v.Errorf("resigning took %v", took)
		}
		locktest.Is(v, c.Err, context.Canceled)
		v.Restart()
		v.Clean()
	})
}

// A process that is no candidate observes the leader, also after the loss of its own session.
func TestElectionObserve(t *testing.T) {
	eachForm(t, func(b *locktest.Fixture, form ...actors.ElectionOption) {
		observer := b.Locks()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		queues := observer.Election(b.LockPath, form...).Observe(ctx)
		expect := func(want ...string) {
			b.Helper()
			limit, ids := locktest.Within(b).Done(), []string(nil)
			for !slices.Equal(ids, want) {
				select {
				case q := <-queues:
					ids = nil
					for i, p := range q.Participants {
						ids = append(ids, string(p.Data))
						if q.Err == nil && p.Holds != (i == 0) {
							b.Errorf("participant %d of %v: %v", i, q, p)
						}
					}
				case <-limit:
					b.Fatalf("the ids are %v, want %v", ids, want)
				}
			}
		}
		as := func(id string) []actors.ElectionOption { return append(slices.Clone(form), actors.AsID(id)) }
		one := b.Campaign(b.Locks().Election(b.LockPath, as("one")...))
		one.Leads()
		expect("one")
		two := b.Campaign(b.Locks().Election(b.LockPath, as("two")...))
		expect("one", "two")
		one.Resigns()
		two.Leads()
		expect("two", "one")
		b.ExpireSession(observer)
		two.Resigns()
		one.Leads()
		expect("one", "two")
		one.End()
		two.Leads()
		two.End()
		expect()
		cancel()
		for range queues { // until it is closed
		}
		q, open := <-observer.Election(b.LockPath, nil).Observe(locktest.Within(b))
		if locktest.Is(b, q.Err, actors.ErrInvalid); !open {
			b.Error("no queue with the error")
		}
	})
}
