//lint:file-ignore SA1012 a nil context is what is tested

package elections

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// The leader holds until the body returns, and ZooKeeper has deleted the node before the next
// statement runs, however the body ends.
func TestLeavingTheBodyResigns(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		locks := b.Locks()
		e := locks.Election(b.LockPath)
		var term *actors.Term
		lead := func() bool {
			for t, err := range e.Campaign(locktest.Within(b)) {
				locktest.Must(b, err)
				term = t
				if len(b.LockNodes()) != 1 || t.Grant().Err() != nil {
					b.Error("the leader does not hold")
				}
				return true
			}
			return false
		}
		for name, leave := range map[string]func(){
			"return": func() { lead() },
			"break": func() {
				for t, err := range e.Campaign(locktest.Within(b)) {
					locktest.Must(b, err)
					term = t
					break
				}
			},
			"panic": func() {
				defer func() {
					if r := recover(); r != "of the body" {
						b.Errorf("recovered %v", r)
					}
				}()
				for t, err := range e.Campaign(locktest.Within(b)) {
					locktest.Must(b, err)
					term = t
					panic("of the body")
				}
			},
			"continue, with the end of the context": func() {
				ctx, cancel := context.WithCancelCause(locktest.Within(b))
				defer cancel(nil)
				bodies := 0
				for t, err := range e.Campaign(ctx) {
					if bodies++; bodies == 2 {
						locktest.Is(b, err, locktest.ErrEnough)
						continue
					}
					locktest.Must(b, err)
					term = t
					cancel(locktest.ErrEnough)
					locktest.Is(b, context.Cause(t.Context()), locktest.ErrEnough)
				}
				if bodies != 2 {
					b.Errorf("%d calls of the body", bodies)
				}
			},
			"a release": func() {
				for t, err := range e.Campaign(locktest.Within(b)) {
					locktest.Must(b, err)
					term = t
					locktest.Unlock(b, t.Grant())
					break
				}
			},
		} {
			leave()
			locktest.Is(b, term.Grant().Err(), actors.ErrReleased)
			if term.Context().Err() == nil {
				b.Errorf("%s: the term's context goes on", name)
			}
			if nodes := b.LockNodes(); len(nodes) > 0 {
				b.Errorf("%s leaves %v", name, nodes)
			}
		}
	})
}

// A client asks the leader to resign, as Curator's Revoker does.
func TestResignOnRevoke(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		revoker := b.Locks()
		one := b.Campaign(b.Locks().Election(b.LockPath, actors.ResignOnRevoke()))
		term := one.Leads()
		two := b.Campaign(b.Locks().Election(b.LockPath), actors.Revocable())
		b.WaitNodes(2)
		_, err := revoker.Revoke(locktest.Within(b), term.Grant().Node(), 0)
		locktest.Must(b, err)
		locktest.Closes(b, term.Context().Done(), "the context of the term")
		locktest.Is(b, context.Cause(term.Context()), actors.ErrRevoked)

		term = two.Leads() // which does not resign on Revoke
		_, err = revoker.Revoke(locktest.Within(b), term.Grant().Node(), 0)
		locktest.Must(b, err)
		locktest.Closes(b, term.Grant().Revoked(), "the wait for the request")
		if term.Context().Err() != nil {
			b.Error("the term has ended")
		}
		b.WaitNodes(2) // the first candidate queues again
		two.Resigns()
		one.Leads()
	})
}

// Resign ends the context of a term. The body of the loop returns then, and the campaign queues again.
func TestResignFromOutside(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		one := b.Campaign(b.Locks().Election(b.LockPath))
		term := one.Leads()
		two := b.Campaign(b.Locks().Election(b.LockPath))
		b.WaitNodes(2)
		term.Resign()
		term.Resign()
		locktest.Closes(b, term.Context().Done(), "the context of the term")
		locktest.Is(b, context.Cause(term.Context()), actors.ErrResigned)
		two.Leads()
		term.Resign()  // of a term that is over
		b.WaitNodes(2) // the first candidate queues again
		two.Resigns()
		one.Leads()
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
		if term := c.Leads(); term.Number() != 2 || v.Resumes() && locks.Session().Epoch != 1 {
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
