package actors_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Two requests come at one time, and the second is cancelled when a third comes: one transaction
// deletes its node and creates another. The third waits for the first. (It was granted, because no
// contender was known ahead.)
func TestLastOfTwoIsReplaced(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks()
		mu := locks.Mutex(v.path)
		var busy []*actors.Mutex
		for i := range 4 { // which makes three transactions: later requests are sent when these are answered
			busy = append(busy, locks.Mutex(fmt.Sprint("/busy/", i)))
		}
		elsewhere := locks.Mutex("/elsewhere")
		for _, m := range []*actors.Mutex{mu, elsewhere} { // which ZooKeeper does not delete while they are empty
			_, err := locks.Multi(v.Context(), &zk.CreateRequest{Path: m.Path(), Acl: zk.WorldACL(zk.PermAll)})
			must(v, err)
		}
		for _, m := range append(busy, mu, elsewhere) {
			unlock(v, lock(v, m))
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
				unlock(v, result(v, f))
			}
		}
		var first, second, third, other *actors.Future[*actors.Grant]
		inOneTransaction(func() { first, second = mu.Acquire(v.Context()), mu.Acquire(v.Context()) })
		g := result(v, first)
		inOneTransaction(func() {
			other = elsewhere.Acquire(v.Context()) // which writes its directory
			second.Cancel()
			third = mu.Acquire(v.Context())
		})
		unlock(v, result(v, other))
		synctest.Wait()
		pending(v, third)
		unlock(v, g)
		unlock(v, result(v, third))
		v.clean()
	})
}

// The first use of a lock takes one transaction, or two with a semaphore, which make its
// directories.
func TestNewPathIsOneTransaction(t *testing.T) {
	each(t, func(b *testLock) {
		d := &dialer{}
		locks := b.locks(d.config)
		first := lock(b, locks.Mutex(b.path+"/first")) // makes the directory above, which must not become empty
		for _, c := range []struct {
			handle
			transactions int
		}{
			{locks.Mutex(b.path + "/mutex"), 1},
			{locks.Semaphore(b.path+"/semaphore", 3), 2},
			{locks.MultiLock(locks.Mutex(b.path+"/a"), locks.Mutex(b.path+"/b")), 1},
			{locks.MultiLock(locks.Semaphore(b.path+"/c", 3), locks.Mutex(b.path+"/d")), 2},
		} {
			var g *actors.Grant
			_, ops := d.during(func() { g = lock(b, c.handle) })
			if ops[embedded.OpMulti] != c.transactions || ops[embedded.OpCreateContainer]+ops[embedded.OpExists] > 0 {
				b.Errorf("%v takes %v", c.handle, ops)
			}
			unlock(b, g)
		}
		unlock(b, first)
	})
}
