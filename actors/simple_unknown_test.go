package actors_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/actors"
)

// TestSimpleOwnerNodeDeletedWhileUnknown loses the answer to the transaction that makes
// the lock node and the owner node, and has another client delete the owner node before the contender
// asks for it. The contender deletes its lock node, and does not wait for it.
func TestSimpleOwnerNodeDeletedWhileUnknown(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		name, lockNode string
		at             func(locks *actors.Locks, path string) locker
	}{
		{"mutex", "lock", func(l *actors.Locks, path string) locker { return l.SimpleMutex(path) }},
		{"writer", "W", func(l *actors.Locks, path string) locker { return l.SimpleRWMutex(path).Write() }},
	} {
		t.Run(k.name, func(t *testing.T) {
			besides(t, func(b *testLock) {
				d := &deafDialer{trigger: []byte(b.path + "/" + k.lockNode + "-")}
				conn, mu := b.Client(b), k.at(b.locks(func(cfg *actors.Config) { cfg.Dial = d.Dial }), b.path)
				unlock(b, lock(b, k.at(b.locks(), b.path))) // makes the directory
				b.waitNodes(0)
				f := mu.Acquire(within(b))
				b.waitNodes(2)
				for _, name := range b.nodes() {
					if name != k.lockNode {
						must(b, conn.Delete(b.path+"/"+name, -1))
					}
				}
				d.cut()
				unlock(b, result(b, f))
				b.waitNodes(0)
			})
		})
	}
}

// deafDialer makes connections. The first one that writes trigger gets no answer to that and to all that
// follows.
type deafDialer struct {
	trigger []byte

	mu   sync.Mutex
	deaf *wireConn
}

func (d *deafDialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &deafConn{&wireConn{Conn: conn, fault: &wireFault{at: -1}, limit: -1}, d}, nil
}

// cut closes the connection that gets no answer.
func (d *deafDialer) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deaf.cut()
}

type deafConn struct {
	*wireConn
	d *deafDialer
}

func (c *deafConn) Write(b []byte) (int, error) {
	c.d.mu.Lock()
	if c.d.deaf == nil && bytes.Contains(b, c.d.trigger) {
		c.d.deaf = c.wireConn
		c.setLimit(0)
	}
	c.d.mu.Unlock()
	return c.wireConn.Write(b)
}
