package zkbridge

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Contenders get their nodes in the order in which they came, also where several transactions in
// a row are refused because another client has deleted the session node.
func TestOrderWithoutSessionNode(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	var count counter
	u, dir, conn := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: count.dial})), s.Path(t), s.Client(t)
	u.created(dir, "zero-")
	must(t, conn.Delete(sessionNodePath(u.bridge.Session().ID), -1))
	count.take()
	s.Embedded().Pause()
	sent := 0
	for i, n := range []int{1, 1, 2} { // as many as there are under way are worth a transaction
		for range n {
			u.createInExisting(dir, fmt.Sprintf("n%d-", sent))
			sent++
		}
		u.settled()
		count.wait(t, int32(embedded.OpMulti), int32(i+1))
	}
	s.Embedded().Resume()
	order := make([]string, sent)
	for range sent {
		node := next[*messages.Created](t, u.peer).GetNode()
		name, number, _ := strings.Cut(node, "-")
		i, err := strconv.Atoi(number)
		must(t, err)
		order[i-1] = name
	}
	if got := fmt.Sprint(order); got != "[n0 n1 n2 n3]" {
		t.Error(got)
	}
}
