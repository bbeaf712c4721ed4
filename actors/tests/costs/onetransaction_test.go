package costs

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Two requests come at one time, and the second is cancelled when a third comes: one transaction
// deletes its node and creates another. The third waits for the first. (It was granted, because no
// contender was known ahead.)
func TestLastOfTwoIsReplaced(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		mu := locks.Mutex(v.LockPath)
		var busy []*actors.Mutex
		for i := range 4 { // which makes three transactions: later requests are sent when these are answered
			busy = append(busy, locks.Mutex(fmt.Sprint("/busy/", i)))
		}
		elsewhere := locks.Mutex("/elsewhere")
		for _, m := range []*actors.Mutex{mu, elsewhere} { // which ZooKeeper does not delete while they are empty
			_, err := locks.Multi(v.Context(), &zk.CreateRequest{Path: m.Path(), Acl: zk.WorldACL(zk.PermAll)})
			locktest.Must(v, err)
		}
		for _, m := range append(busy, mu, elsewhere) {
			locktest.Unlock(v, locktest.Lock(v, m))
		}
		inOneTransaction := func(request func()) {
			v.Inject(embedded.Fault{Op: embedded.OpMulti, Path: "/busy", Action: embedded.DelayReply, Delay: time.Second})
			var fs []*actors.Future[*actors.Grant]
			for _, m := range busy {
				fs = append(fs, m.Acquire(v.Context()))
			}
			synctest.Wait()
			request()
			for _, f := range fs {
				locktest.Unlock(v, locktest.Result(v, f))
			}
		}
		var first, second, third, other *actors.Future[*actors.Grant]
		inOneTransaction(func() { first, second = mu.Acquire(v.Context()), mu.Acquire(v.Context()) })
		g := locktest.Result(v, first)
		inOneTransaction(func() {
			other = elsewhere.Acquire(v.Context()) // which writes its directory
			second.Cancel()
			third = mu.Acquire(v.Context())
		})
		locktest.Unlock(v, locktest.Result(v, other))
		synctest.Wait()
		locktest.Pending(v, third)
		locktest.Unlock(v, g)
		locktest.Unlock(v, locktest.Result(v, third))
		v.Clean()
	})
}

// The first use of a lock takes one transaction, or two with a semaphore, which make its
// directories.
func TestNewPathIsOneTransaction(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		d := &locktest.Network{}
		locks := b.Locks(d.Config)
		first := locktest.Lock(b, locks.Mutex(b.LockPath+"/first")) // makes the directory above, which must not become empty
		for _, c := range []struct {
			locktest.Handle
			transactions int
		}{
			{locks.Mutex(b.LockPath + "/mutex"), 1},
			{locks.Semaphore(b.LockPath+"/semaphore", 3), 2},
			{locks.MultiLock(locks.Mutex(b.LockPath+"/a"), locks.Mutex(b.LockPath+"/b")), 1},
			{locks.MultiLock(locks.Semaphore(b.LockPath+"/c", 3), locks.Mutex(b.LockPath+"/d")), 2},
		} {
			var g *actors.Grant
			_, ops := d.During(func() { g = locktest.Lock(b, c.Handle) })
			if ops[embedded.OpMulti] != c.transactions || ops[embedded.OpCreateContainer]+ops[embedded.OpExists] > 0 {
				b.Errorf("%v takes %v", c.Handle, ops)
			}
			locktest.Unlock(b, g)
		}
		locktest.Unlock(b, first)
	})
}
