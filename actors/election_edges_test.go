package actors_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// An id over MaxNodeData is a final error, though requests over other limits are repeated.
func TestElectionWithTooLongAnID(t *testing.T) {
	each(t, func(b *testLock) {
		locks := b.locks(func(cfg *actors.Config) { cfg.MaxNodeData = 3 })
		b.campaign(locks.Election(b.path, actors.AsID("four"))).fails(actors.ErrLimit)
		b.campaign(locks.Election(b.path, actors.AsID("two"))).leads()
	})
}

// The nodes of LeaderSelector and of LeaderLatch do not exclude each other. A process refuses the
// second form, and logs an error if another process has it.
func TestElectionFormsDoNotMix(t *testing.T) {
	each(t, func(b *testLock) {
		var log logs
		locks := b.locks()
		b.campaign(locks.Election(b.path)).leads()
		b.campaign(locks.Election(b.path, actors.LeaderLatchNodes())).fails(actors.ErrInvalid)
		b.campaign(b.locks(log.config).Election(b.path, actors.LeaderLatchNodes())).leads()
		zktest.Eventually(b, timeLimit, func() bool { return len(log.with("two recipes use one path")) == 1 }, "a line of the log")
	})
}

// A body that ends its goroutine, as testing's FailNow does, resigns, too.
func TestBodyEndsItsGoroutine(t *testing.T) {
	each(t, func(b *testLock) {
		e, ended := b.locks().Election(b.path), make(chan struct{})
		go func() {
			defer close(ended)
			for _, err := range e.Campaign(within(b)) {
				must(b, err)
				runtime.Goexit()
			}
		}()
		closes(b, ended, "the goroutine")
		if nodes := b.nodes(); len(nodes) > 0 {
			b.Errorf("nodes %v are left", nodes)
		}
	})
}

// ZooKeeper refuses to delete the leader's node: the campaign ends with the error, and does not
// wait behind its own node.
func TestResigningWithoutTheRight(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		must(b, conn.AddAuth("digest", []byte("admin:secret")))
		acl := append(zk.DigestACL(zk.PermAll, "admin", "secret"), zk.WorldACL(zk.PermRead|zk.PermWrite|zk.PermCreate)...)
		_, err := conn.Create(b.path, nil, zk.FlagPersistent, acl)
		must(b, err)
		locks := b.locks()
		c := b.campaign(locks.Election(b.path))
		c.leads()
		c.resigns()
		c.fails(actors.ErrNoAuth)
		must(b, locks.Close())
		b.waitNodes(0)
		must(b, conn.Delete(b.path, -1))
	})
}

// The leader resigns without an answer from ZooKeeper, which blocks until ZooKeeper answers or the
// session is lost. Then the campaign goes on, or ends with its context.
func TestResigningWithoutZooKeeper(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks()
		c := newLedger(v).campaign(locks.Election("/lock"))
		c.leads()
		v.Halt()
		c.resigns()
		<-time.After(time.Second)
		c.waits()
		v.Restart()
		if term := c.leads(); term.Number() != 2 || locks.Session().Epoch != 1 {
			v.Errorf("term %d in session %d", term.Number(), locks.Session().Epoch)
		}
		v.Halt()
		left := time.Now()
		c.stop()
		closes(v, c.ended, "the campaign")
		if took := time.Since(left); took > session {
			v.Errorf("resigning took %v", took)
		}
		is(v, c.err, context.Canceled)
		v.Restart()
		v.clean()
	})
}

// A process that is no candidate observes the leader, also after the loss of its own session.
func TestElectionObserve(t *testing.T) {
	eachForm(t, func(b *testLock, form ...actors.ElectionOption) {
		observer := b.locks()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		queues := observer.Election(b.path, form...).Observe(ctx)
		expect := func(want ...string) {
			b.Helper()
			limit, ids := within(b).Done(), []string(nil)
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
		one := b.campaign(b.locks().Election(b.path, as("one")...))
		one.leads()
		expect("one")
		two := b.campaign(b.locks().Election(b.path, as("two")...))
		expect("one", "two")
		one.resigns()
		two.leads()
		expect("two", "one")
		b.expire(observer)
		two.resigns()
		one.leads()
		expect("one", "two")
		one.end()
		two.leads()
		two.end()
		expect()
		cancel()
		for range queues { // until it is closed
		}
		q, open := <-observer.Election(b.path, nil).Observe(within(b))
		if is(b, q.Err, actors.ErrInvalid); !open {
			b.Error("no queue with the error")
		}
	})
}
