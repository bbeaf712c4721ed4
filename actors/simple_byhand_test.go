package actors_test

import (
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Another client deletes or overwrites the nodes of simple locks.

// A lock node is deleted before its contender has listed the directory, and another contender makes the next
// one.
func TestSimpleLockNodeReplaced(t *testing.T) {
	each(t, func(b *testLock) {
		reached, open, once := make(chan struct{}), make(chan struct{}), sync.Once{}
		d := &dialer{write: func(c *wireConn, op embedded.Op, message []byte) (int, error) {
			if op == embedded.OpGetChildren2 { // the first list is delayed
				once.Do(func() {
					close(reached)
					<-open
				})
			}
			return c.Conn.Write(message)
		}}
		rw, other := b.locks(d.config).SimpleRWMutex(b.path), b.locks().SimpleRWMutex(b.path)
		f := rw.Write().Acquire(within(b))
		closes(b, reached, "the list")
		must(b, b.Client(b).Delete(b.path+"/W", -1))
		g := lock(b, other.Write())
		close(open)
		select {
		case <-f.Done():
			b.Error("two contenders hold")
		case <-manyRoundTrips(b):
		}
		pending(b, f)
		if g.Err() != nil {
			b.Error(g.Err())
		}
		unlock(b, g)
		unlock(b, result(b, f))
	})
}

// manyRoundTrips closes its channel after many acquires of another lock.
func manyRoundTrips(b *testLock) <-chan struct{} {
	done := make(chan struct{})
	mu := b.locks().Mutex(b.path + "-another")
	go func() {
		defer close(done)
		for range 50 {
			if g, err := mu.Lock(within(b)); err == nil {
				g.Unlock(within(b))
			}
		}
	}()
	return done
}

// Data that another client writes into the lock node have no effect.
func TestSimpleLockNodeOverwritten(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		one, two := b.locks(idle(10*time.Millisecond)), b.locks()
		for _, c := range []struct {
			lockNode string
			mu       handle
			other    handle
		}{
			{"lock", one.SimpleMutex(b.path + "-mutex"), two.SimpleMutex(b.path + "-mutex")},
			{"W", one.SimpleRWMutex(b.path).Write(), two.SimpleRWMutex(b.path).Write()},
		} {
			g := lock(b, c.mu)
			lockNode := c.mu.Path() + "/" + c.lockNode
			for range 3 {
				_, err := conn.Set(lockNode, []byte("overwritten"), -1)
				must(b, err)
				f := c.other.Acquire(within(b))
				<-manyRoundTrips(b)
				pending(b, f)
				if g.Err() != nil {
					b.Errorf("%s: %v", lockNode, g.Err())
				}
				f.Cancel()
			}
			f := c.other.Acquire(within(b))
			unlock(b, g)
			unlock(b, result(b, f))
			zktest.Eventually(b, timeLimit, func() bool { return len(b.Nodes(b, c.mu.Path())) == 0 }, "the nodes are deleted")
		}
	})
}
