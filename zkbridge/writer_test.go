package zkbridge

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The bridge sends a transaction for a directory that exists before earlier ones are answered, as
// soon as there is as much to send as is in flight, or has waited for half a millisecond.
func TestTransactionsUnderWay(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := zktest.Virtual(t)
		d := testDialer{dial: s.Dial}
		b := connected(t, Config{Servers: s.Addr(), Dial: d.Dial})
		defer b.Close()
		u, dir := newUser(t, b), s.Path(t)
		u.created(dir, "zero-")
		d.take()
		s.Embedded().Pause()
		creates := 0
		afterCreates := func(n, transactions int) {
			t.Helper()
			for range n {
				u.createInExisting(dir, "n-")
			}
			creates += n
			synctest.Wait()
			if sent := d.sent(embedded.OpMulti); sent != transactions {
				t.Errorf("%d transactions are sent after %d creates, not %d", sent, creates, transactions)
			}
		}
		for _, transactions := range []int{1, 2, 2, 3} {
			afterCreates(1, transactions)
		}
		afterCreates(5, 3) // beside three in flight, none is sent at once
		<-time.After(600 * time.Microsecond)
		afterCreates(0, 4)
		for n := range writer.MaxInFlight {
			afterCreates(1, min(4+n, writer.MaxInFlight))
			<-time.After(600 * time.Microsecond)
		}
		s.Embedded().Resume()
		var sizes []int
		for range creates {
			if m := next[*messages.Created](u); m.GetStep() == 0 {
				sizes = append(sizes, 0)
			}
			sizes[len(sizes)-1]++
		}
		if fmt.Sprint(sizes) != "[1 1 2 5 1 1 1 1 1 1 1 1 1 1 1 1 4]" {
			t.Errorf("transactions of %v", sizes)
		}
	})
}

// Creates make their nodes in the order in which they arrive, also those that arrive while the
// bridge cannot send.
func TestOrderOfTheUnsent(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
	u.created(dir, "zero-")
	var w *zkconn.Conn
	u.bridge.runInActor(func(c *bridgeActor) { w = c.epoch.conn.Use(nil) })
	const n = 6
	for i := range n - 2 {
		u.create(dir, fmt.Sprintf("n%d-", i))
	}
	for range 2 { // the bridge knows then which requests it could not send
		u.bridge.runInActor(func(*bridgeActor) {})
	}
	u.bridge.runInActor(func(c *bridgeActor) { c.session.state = messages.SessionState_SUSPENDED })
	for i := range 2 {
		u.create(dir, fmt.Sprintf("n%d-", n-2+i))
	}
	u.bridge.runInActor(func(c *bridgeActor) {
		c.epoch.setConn(w)
		c.session.state = messages.SessionState_CONNECTED
		c.epoch.resume()
	})
	if got := fmt.Sprint(u.createdInOrder(n)); got != "[n0 n1 n2 n3 n4 n5]" {
		t.Error(got)
	}
}

// createdInOrder waits for n nodes that follow the first one in their directory. It returns their
// names, which end at a hyphen, in the order of their sequence numbers.
func (u *user) createdInOrder(n int) []string {
	order := make([]string, n)
	for range n {
		name, number, _ := strings.Cut(next[*messages.Created](u).GetNode(), "-")
		i, err := strconv.Atoi(number)
		must(u.t, err)
		order[i-1] = name
	}
	return order
}
