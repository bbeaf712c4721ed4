package actors_test

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// The answer to the transaction that makes the lock node and the owner node is lost, and another client deletes
// the owner node before the contender looks it up. The contender deletes its lock node, and does not wait for
// it.
func TestSimpleOwnerNodeDeletedWhileUnknown(t *testing.T) {
	t.Parallel()
	for name, lockNode := range map[string]string{"simple mutex": "lock", "simple write": "W"} {
		t.Run(name, func(t *testing.T) {
			r := named(name)[0]
			each(t, func(b *testLock) {
				var unanswered atomic.Pointer[wireConn] // reads no answer from the transaction on
				d := &dialer{write: func(c *wireConn, _ embedded.Op, message []byte) (int, error) {
					if bytes.Contains(message, []byte(b.path+"/"+lockNode+"-")) && unanswered.CompareAndSwap(nil, c) {
						c.setLimit(0)
					}
					return c.Conn.Write(message)
				}}
				conn, mu := b.Client(b), r.at(b.locks(d.config), b.path)
				unlock(b, lock(b, r.at(b.locks(), b.path))) // which makes the directory
				b.waitNodes(0)
				f := mu.Acquire(within(b))
				b.waitNodes(2)
				for _, name := range b.nodes() {
					if name != lockNode {
						must(b, conn.Delete(b.path+"/"+name, -1))
					}
				}
				unanswered.Load().cut()
				unlock(b, result(b, f))
				b.waitNodes(0)
			})
		})
	}
}
