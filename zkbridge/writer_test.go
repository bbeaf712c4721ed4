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
		w := newUnderWay(t)
		creates := 0
		create := func(n, transactions int) {
			t.Helper()
			for range n {
				w.createInExisting(w.dir, "n-")
			}
			creates += n
			w.wantSent(transactions)
		}
		for _, transactions := range []int{1, 2, 2, 3} {
			create(1, transactions)
		}
		create(5, 3) // beside three in flight, none is sent at once
		<-time.After(600 * time.Microsecond)
		w.wantSent(4)
		for n := range writer.MaxInFlight {
			create(1, min(4+n, writer.MaxInFlight))
			<-time.After(600 * time.Microsecond)
		}
		if sizes := fmt.Sprint(w.answers(creates)); sizes != "[1 1 2 5 1 1 1 1 1 1 1 1 1 1 1 1 4]" {
			t.Errorf("transactions of %v", sizes)
		}
	})
}

// So it does for directories that may be missing, beside fewer transactions.
func TestTransactionsForNewDirectories(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := newUnderWay(t)
		for n, transactions := range []int{1, 2, 2, 2} {
			w.create(fmt.Sprint(w.dir, "/", n), "n-")
			w.wantSent(transactions)
		}
		<-time.After(600 * time.Microsecond)
		w.wantSent(3)
		if sizes := fmt.Sprint(w.answers(4)); sizes != "[1 1 2]" {
			t.Errorf("transactions of %v", sizes)
		}
	})
}

// So it does for creates that go alone.
func TestCreatesUnderWayWithoutSessionNode(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := newUnderWay(t)
		w.bridge.runInActor(func(a *bridgeActor) { a.epoch.Writer.SessionNode = "" })
		for n, sent := range []int{1, 2, 2} {
			w.createInExisting(w.dir, fmt.Sprint(n, "-"))
			w.wantSentOf(embedded.OpCreate2, sent)
		}
		<-time.After(600 * time.Microsecond)
		w.wantSentOf(embedded.OpCreate2, 3)
		w.answers(3)
	})
}

// underWay is a user in a bubble whose server does not answer until answers is called.
type underWay struct {
	*user
	t      *testing.T
	server *zktest.Server
	dir    string // exists
	dialer testDialer
}

func newUnderWay(t *testing.T) *underWay {
	w := &underWay{t: t, server: zktest.Virtual(t)}
	w.dialer.dial = w.server.Dial
	w.user, w.dir = newUser(t, connected(t, Config{Servers: w.server.Addr(), Dial: w.dialer.Dial})), w.server.Path(t)
	w.created(w.dir, "zero-")
	w.dialer.take()
	w.server.Embedded().Pause()
	return w
}

// wantSent checks how many transactions are sent at this moment.
func (w *underWay) wantSent(transactions int) {
	w.t.Helper()
	w.wantSentOf(embedded.OpMulti, transactions)
}

// wantSentOf checks how many requests of a type are sent.
func (w *underWay) wantSentOf(op embedded.Op, n int) {
	w.t.Helper()
	synctest.Wait()
	if sent := w.dialer.sent(op); sent != n {
		w.t.Errorf("%d requests %v are sent, not %d", sent, op, n)
	}
}

// answers has the server answer the creates, and returns the number of them in each transaction.
func (w *underWay) answers(creates int) (sizes []int) {
	w.server.Embedded().Resume()
	for range creates {
		if m := next[*messages.Created](w.user); m.GetStep() == 0 {
			sizes = append(sizes, 0)
		}
		sizes[len(sizes)-1]++
	}
	return sizes
}

// Creates make their nodes in the order in which they arrive, also those that arrive while the
// bridge cannot send.
func TestOrderOfTheUnsent(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
	u.created(dir, "zero-")
	var w *zkconn.Conn
	u.bridge.runInActor(func(c *bridgeActor) { w = c.epoch.Conn.Use(nil) })
	const n = 6
	for i := range n - 2 {
		u.create(dir, fmt.Sprintf("n%d-", i))
	}
	for range 2 { // the bridge knows then which requests it could not send
		u.bridge.runInActor(func(*bridgeActor) {})
	}
	u.bridge.runInActor(func(c *bridgeActor) { c.session.State = messages.SessionState_SUSPENDED })
	for i := range 2 {
		u.create(dir, fmt.Sprintf("n%d-", n-2+i))
	}
	u.bridge.runInActor(func(c *bridgeActor) {
		c.epoch.Use(w)
		c.session.State = messages.SessionState_CONNECTED
		c.epoch.Resume()
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
