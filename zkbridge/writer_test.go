package zkbridge

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Transactions of one directory that exists are sent before those ahead of them are answered, each
// when there is as much to send as is under way.
func TestTransactionsUnderWay(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	var count counter
	u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: count.dial})), s.Path(t)
	u.created(dir, "zero-")
	count.take()
	s.Embedded().Pause()
	const rest = 5
	for _, transactions := range []int32{1, 2, 2, 3} { // so many there are by then
		u.createInExisting(dir, "n-")
		count.wait(t, int32(embedded.OpMulti), transactions)
		u.settled()
	}
	for range rest {
		u.createInExisting(dir, "n-")
	}
	u.settled()
	count.wait(t, int32(embedded.OpMulti), writer.MaxInFlight)
	s.Embedded().Resume()
	var sizes []int
	for range 4 + rest {
		if m := next[*messages.Created](t, u.peer); m.GetStep() == 0 {
			sizes = append(sizes, 0)
		}
		sizes[len(sizes)-1]++
	}
	if fmt.Sprint(sizes) != "[1 1 2 5]" {
		t.Errorf("transactions of %v", sizes)
	}
}

// Contenders get their nodes in the order in which they came, also those that came while
// nothing could be sent.
func TestOrderOfTheUnsent(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
	u.created(dir, "zero-")
	var w *zkconn.Conn
	u.do(func(c *bridgeActor) { w = c.epoch.conn.Use(nil) })
	const n = 6
	for i := range n - 2 {
		u.create(dir, fmt.Sprintf("n%d-", i))
	}
	u.do(func(c *bridgeActor) {})
	u.do(func(c *bridgeActor) {}) // what was not sent is known now
	u.do(func(c *bridgeActor) { c.session.state = messages.SessionState_SUSPENDED })
	for i := range 2 {
		u.create(dir, fmt.Sprintf("n%d-", n-2+i))
	}
	u.do(func(c *bridgeActor) {
		c.epoch.setConn(w)
		c.session.state = messages.SessionState_CONNECTED
		c.epoch.resume()
	})
	order := make([]string, n)
	for range n {
		node := next[*messages.Created](t, u.peer).GetNode()
		name, number, _ := strings.Cut(node, "-")
		i, err := strconv.Atoi(number)
		must(t, err)
		order[i-1] = name
	}
	if got := fmt.Sprint(order); got != "[n0 n1 n2 n3 n4 n5]" {
		t.Error(got)
	}
}

// settled waits until the bridge has sent what it was asked for.
func (u *user) settled() { u.do((*bridgeActor).Flush) }

// do has the bridge do something, and waits for it.
func (u *user) do(what task) {
	done := make(chan struct{})
	u.bridge.ref.Tell(task(func(c *bridgeActor) {
		what(c)
		close(done)
	}))
	<-done
}
