package actors_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Simple locks whose nodes another client deletes or overwrites.

// barrier is a dialer that keeps back the first request of one kind.
type barrier struct {
	op      embedded.Op
	once    sync.Once
	reached chan struct{}
	open    chan struct{}
}

func newBarrier(op embedded.Op) *barrier {
	return &barrier{op: op, reached: make(chan struct{}), open: make(chan struct{})}
}

func (b *barrier) config(cfg *actors.Config) {
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &barredConn{Conn: c, b: b}, nil
	}
}

type barredConn struct {
	net.Conn
	b       *barrier
	greeted bool
}

func (c *barredConn) Write(p []byte) (int, error) {
	if c.greeted && len(p) >= 12 && embedded.Op(binary.BigEndian.Uint32(p[8:])) == c.b.op {
		c.b.once.Do(func() {
			close(c.b.reached)
			<-c.b.open
		})
	}
	c.greeted = true
	return c.Conn.Write(p)
}

// A lock node is deleted before its maker has listed the contenders, and another contender makes its own.
func TestSimpleLockNodeReplaced(t *testing.T) {
	each(t, func(b *testLock) {
		bar := newBarrier(embedded.OpGetChildren2)
		rw, other := b.locks(bar.config).SimpleRWMutex(b.path), b.locks().SimpleRWMutex(b.path)
		f := rw.Write().Acquire(within(b))
		closes(b, bar.reached, "the list")
		must(b, b.Client(b).Delete(b.path+"/W", -1))
		g := lock(b, other.Write())
		close(bar.open)
		select {
		case <-f.Done():
			b.Error("two hold")
		case <-bounded(b):
		}
		pending(b, f)
		if g.Err() != nil {
			b.Error(g.Err())
		}
		unlock(b, g)
		unlock(b, result(b, f))
	})
}

// bounded ends when another lock of the server was acquired many times.
func bounded(b *testLock) <-chan struct{} {
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

// Data that another client writes into the lock node change nothing.
func TestSimpleLockNodeOverwritten(t *testing.T) {
	each(t, func(b *testLock) {
		conn := b.Client(b)
		one, two := b.locks(idle(10*time.Millisecond)), b.locks()
		for _, c := range []struct {
			lockNode string
			mu       locker
			other    locker
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
				<-bounded(b)
				pending(b, f)
				if g.Err() != nil {
					b.Errorf("%s: %v", lockNode, g.Err())
				}
				f.Cancel()
			}
			f := c.other.Acquire(within(b))
			unlock(b, g)
			unlock(b, result(b, f))
			zktest.Eventually(b, patience, func() bool { return len(b.Nodes(b, c.mu.Path())) == 0 }, "the nodes go")
		}
	})
}
