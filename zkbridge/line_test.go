package zkbridge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l line
		turns := make(chan int, 4)
		var places []*place
		for i := range 4 {
			p := l.join()
			places = append(places, p)
			go func() {
				p.wait()
				turns <- i
			}()
		}
		expect := func(n int) {
			t.Helper()
			synctest.Wait()
			if len(turns) != n {
				t.Fatalf("%d had their turn, not %d", len(turns), n)
			}
		}
		expect(1)
		l.advance()
		expect(2)
		places[0].leave() // the line has moved on long before
		expect(2)
		places[1].leave() // it was never sent
		expect(3)
		l.advance()
		l.advance() // of the same: the fourth goes on waiting for nothing
		places[2].leave()
		expect(4)
		for i := range 4 {
			if got := <-turns; got != i {
				t.Errorf("%d had the turn of %d", got, i)
			}
		}
	})
}

// held is a client that keeps the transaction beginning with the creation of a node
// "first-" waiting: before it is sent, or before its answer is told.
func held(before, after func()) *faulty {
	return &faulty{multi: func(ops []any, send func() ([]zk.MultiResponse, error)) ([]zk.MultiResponse, error) {
		c, ok := ops[0].(*zk.CreateRequest)
		if !ok || !strings.HasSuffix(c.Path, "/first-") {
			return send()
		}
		before()
		results, err := send()
		after()
		return results, err
	}}
}

// Contenders of one directory that go in several transactions get their nodes, and their
// answers, in the order in which they came.
func TestTransactionsKeepTheirOrder(t *testing.T) {
	var u *user
	landed := func() bool {
		is := make(chan bool)
		u.bridge.ref.Tell(task(func(c *core) {
			is <- slices.ContainsFunc(c.ep.outbox.flights, func(f *flight) bool { return f.landed })
		}))
		return <-is
	}
	for name, f := range map[string]*faulty{
		"sent late": held(func() { <-time.After(100 * time.Millisecond) }, func() {}), // in which the next might overtake it
		"told late": held(func() {}, func() {
			for !landed() { // the next
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s := zktest.Embedded(t)
			u = withFaults(t, s, f)
			dir := s.Path(t)
			u.created(dir, "zero-")
			var ids []uint64
			for _, prefix := range []string{"first-", "second-", "third-", "fourth-"} {
				ids = append(ids, u.create(dir, prefix))
			}
			for i, id := range ids {
				m := next[*messages.Created](t, u.peer)
				if m.GetId() != id || !strings.HasSuffix(m.GetNode(), fmt.Sprintf("%010d", i+1)) {
					t.Errorf("request %d was answered as %d: %v", id, i, m)
				}
			}
		})
	}
}

// Transactions of one directory are sent before those ahead of them are answered, each
// when there is as much to send as is under way.
func TestTransactionsUnderWay(t *testing.T) {
	s := zktest.Embedded(t)
	var count counter
	u, dir := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: count.dial})), s.Path(t)
	u.created(dir, "zero-")
	count.take()
	s.Embedded().Pause()
	const rest = 5
	for range fillers + rest {
		u.create(dir, "n-")
	}
	sent := 0
	zktest.Eventually(t, patience, func() bool {
		sent += count.take()[int32(embedded.OpMulti)]
		return sent == maxMultis
	}, "%d transactions are under way", maxMultis)
	s.Embedded().Resume()
	var sizes []int
	for range fillers + rest {
		if m := next[*messages.Created](t, u.peer); m.GetStep() == 0 {
			sizes = append(sizes, 0)
		}
		sizes[len(sizes)-1]++
	}
	if fmt.Sprint(sizes) != "[1 1 2 5]" {
		t.Errorf("transactions of %v", sizes)
	}
}

func TestEnough(t *testing.T) {
	flying := func(sizes ...int) (o outbox) {
		for _, n := range sizes {
			o.flights = append(o.flights, &flight{batch: &batch{writes: make([]write, n)}})
		}
		return o
	}
	for _, c := range []struct {
		sizes []int
		want  int
	}{{nil, 0}, {[]int{1}, 1}, {[]int{1, 2}, 3}, {[]int{maxOps}, maxOps / 2}} {
		if o := flying(c.sizes...); o.enough() != c.want {
			t.Errorf("beside %v: %d, want %d", c.sizes, o.enough(), c.want)
		}
	}
}
