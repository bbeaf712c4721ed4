package zkbridge

import (
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Creates make their nodes in the order in which they arrive, also if several transactions in a row
// are refused because another client has deleted the session node.
func TestOrderWithoutSessionNode(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	var d testDialer
	u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial})), s.Path(t), s.Client(t)
	u.created(dir, "zero-")
	must(t, conn.Delete(epoch.SessionNodePath(u.bridge.Session().ID), -1))
	d.take()
	s.Embedded().Pause()
	sent := 0
	for i, n := range []int{1, 1, 2} { // a transaction is sent as soon as it has as many creates as are in flight
		for range n {
			u.createInExisting(dir, fmt.Sprintf("n%d-", sent))
			sent++
		}
		u.flush()
		d.waitSent(t, embedded.OpMulti, i+1)
	}
	s.Embedded().Resume()
	if got := fmt.Sprint(u.createdInOrder(sent)); got != "[n0 n1 n2 n3]" {
		t.Error(got)
	}
}
