package zktest

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Bubble is synctest.Test. Under the race detector the process has one processor during the test:
// in Go 1.26 two goroutines of a bubble that set a timer which fires at once run it with the same
// context of the race detector, which on two processors destroys the context's stack (SIGSEGV, or
// gigabytes of it).
func Bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if RaceDetector {
		bubbles.begin()
		defer bubbles.end()
	}
	synctest.Test(t, f)
}

// Virtual starts an embedded server without a network, for a test in a [Bubble], and closes it when
// the test ends. Clients connect to it by [Server.Dial]. Its tick is 100 ms, and the longest
// session a minute.
func Virtual(t testing.TB, opts ...ServerOption) *Server {
	t.Helper()
	needsNoExternal(t, "an embedded")
	o := collect(opts)
	e, err := embedded.Start(embedded.ServerConfig{MemoryOnly: true, TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Minute,
		MinSessionTimeout: 200 * time.Millisecond, Version: o.version})
	if err != nil {
		t.Fatalf("zktest: start the embedded server: %v", err)
	}
	t.Cleanup(func() { e.Close() })
	return &Server{addr: "127.0.0.1:1", embedded: e, virtual: true}
}

// bubbles counts the bubbles of the process under the race detector.
var bubbles bubbleCount

// bubbleCount counts the bubbles that run. The process has one processor until the last of them has
// ended.
type bubbleCount struct {
	mu         sync.Mutex
	n          int
	processors int // before the first of them
}

func (c *bubbleCount) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n++; c.n == 1 {
		c.processors = runtime.GOMAXPROCS(1)
	}
}

func (c *bubbleCount) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 {
		runtime.GOMAXPROCS(c.processors)
	}
}
