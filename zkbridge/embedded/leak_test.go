package embedded_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Sessions that end, in each way, leave no goroutine, no node, no watch and no memory.
func TestManySessionsLeakNothing(t *testing.T) {
	s := embedded.Run(t)
	other := openSession(t, s.Addr(), 40*time.Second)
	round := func(n int) {
		for i := range n {
			oneSession(t, s, i)
		}
		zktest.Eventually(t, timeLimit, func() bool {
			return s.Watches() == 0 && !slices.ContainsFunc(s.Sessions(), func(info embedded.SessionInfo) bool {
				return info.Connected && info.ID != other.id
			})
		}, "the server has noticed the closed connections")
		s.Advance(time.Minute) // past the timeout of those that were cut off
		want(t, "sessions", len(s.Sessions()), 1)
		want(t, "nodes", s.Dump(), "")
	}
	round(500) // the memory for reuse is allocated after that
	goroutines, heap := runtime.NumGoroutine(), heapInUse()
	sessions := 5000
	if !zktest.Exhaustive() {
		sessions = 1500
	}
	start := time.Now()
	for done := 0; done < sessions && time.Since(start) < 20*time.Second; done += 500 {
		round(500)
	}
	zktest.Eventually(t, timeLimit, func() bool { return runtime.NumGoroutine() <= goroutines }, "%d goroutines again", goroutines)
	// Connections linger for a second while their last output is written.
	zktest.Eventually(t, timeLimit, func() bool { return heapInUse() < heap+256<<10 },
		"%d sessions left nothing of their memory behind", sessions)
	want(t, "still serves", other.call(embedded.OpExists, "/", false).err, 0)
}

// oneSession opens a session, uses it, and ends it in one of five ways.
func oneSession(t *testing.T, s *embedded.Server, i int) {
	nc, err := s.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := newRaw(t, nc) // without a deadline, whose timer would keep the pipe in memory
	if !c.connect(10*time.Second, 0, c.password, 0) {
		t.Fatal("no session")
	}
	for j, op := range []embedded.Op{embedded.OpCreate, embedded.OpCreate2} {
		c.call(op, fmt.Sprintf("/leak-%d-%d", i, j), make([]byte, 1000), open, 1)
	}
	c.call(embedded.OpGetData, "/zookeeper", true)
	c.call(embedded.OpExists, fmt.Sprintf("/leak-%d-none", i), true)
	c.call(embedded.OpGetChildren2, "/", true)
	c.call(embedded.OpAddWatch, fmt.Sprintf("/leak-%d-recursive", i), 1)
	c.call(embedded.OpAuth, 0, "digest", []byte("u:p"))
	switch i % 5 {
	case 0:
		c.call(embedded.OpCloseSession)
	case 1: // it is cut off
	case 2:
		s.Expire(c.id)
	case 3:
		s.Inject(embedded.Fault{Session: c.id, Action: embedded.DropReply})
		c.request(embedded.OpSync, "/")
		c.closed()
	case 4:
		s.Freeze(c.id)
		c.call(embedded.OpCloseSession)
	}
}

// heapInUse returns the bytes of reachable memory.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // pools give back in two steps
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
