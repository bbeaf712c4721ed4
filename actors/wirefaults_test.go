package actors_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// TestWireFaults lets the connection to a real ZooKeeper fail at each message that a
// client sends, in each way that a network has, while it takes its turn at a lock between
// two turns of a rival's.
func TestWireFaults(t *testing.T) {
	t.Parallel()
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		wireFaults(t, zktest.Own(t), wireWays)
	})
	t.Run("three servers", func(t *testing.T) {
		wireFaults(t, three(t).Server, slices.DeleteFunc(slices.Clone(wireWays), func(w wireWay) bool { return !w.moves }))
	})
}

func wireFaults(t *testing.T, s *zktest.Server, ways []wireWay) {
	messages := turns(t, s, &wireFault{at: -1})
	sampled := sample.OneIn(t, 7)
	for _, how := range ways {
		if !sampled() {
			continue
		}
		var missed atomic.Int32
		t.Run(how.name, func(t *testing.T) {
			for at := range messages {
				t.Run(fmt.Sprint(at), func(t *testing.T) {
					t.Parallel()
					fault := &wireFault{way: how, at: at}
					turns(t, s, fault)
					if !fault.fired {
						missed.Add(1)
					}
				})
			}
		})
		// How many there are depends a little on which event comes first.
		if n := missed.Load(); n > 2 {
			t.Errorf("%s: %d of %d messages were not sent", how.name, n, messages)
		}
	}
}

// wireWay is how a connection fails at a message. It returns what Write does.
type wireWay struct {
	name string
	fail func(c *wireConn, message []byte) (int, error)
	// greetings is how many of the handshakes after that fail, too: the first message
	// of a connection, or the second, which authenticates.
	greetings int
	// moves: what was done on one server is to be found out on another.
	moves bool
}

var wireWays = []wireWay{
	{name: "cut before", fail: func(c *wireConn, message []byte) (int, error) { return c.cut() }},
	{name: "cut within the request", fail: func(c *wireConn, message []byte) (int, error) {
		c.Conn.Write(message[:len(message)/2])
		return c.cut()
	}},
	{name: "cut before the reply", fail: (*wireConn).unanswered, moves: true},
	{name: "cut within the reply", fail: func(c *wireConn, message []byte) (int, error) {
		c.setLimit(10)
		return c.Conn.Write(message)
	}},
	{name: "late", fail: func(c *wireConn, message []byte) (int, error) {
		<-time.After(100 * time.Millisecond)
		return c.Conn.Write(message)
	}},
	{name: "black hole", moves: true, fail: func(c *wireConn, message []byte) (int, error) {
		c.setLimit(0)
		return c.Conn.Write(message)
	}},
	{name: "cut before the reply, and in the handshakes", fail: (*wireConn).unanswered, greetings: 2},
}

// wireFault is a fault for the message of one client that has the number at, from 0, its
// pings left out.
type wireFault struct {
	way wireWay
	at  int

	mu        sync.Mutex
	sent      int
	fired     bool
	greetings int
}

// write is the write of a dialer.
func (f *wireFault) write(c *wireConn, _ embedded.Op, message []byte) (int, error) {
	if f.strikes(c.writes == 1, c.writes == 2) {
		return f.way.fail(c, message)
	}
	return c.Conn.Write(message)
}

// strikes counts the message, and reports whether the connection fails at it.
func (f *wireFault) strikes(first, second bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent++
	if !f.fired && f.sent-1 == f.at {
		f.fired = true
		return true
	}
	if f.fired && f.greetings < f.way.greetings && (f.greetings == 0 && first || f.greetings == 1 && second) {
		f.greetings++
		return true
	}
	return false
}

// turns has two sessions take turns. It returns how many messages the client has sent.
func turns(t *testing.T, s *zktest.Server, fault *wireFault) int {
	b := &testLock{T: t, Server: s, path: s.Path(t), parallel: true}
	rival := b.mutex()
	locks, err := actors.Connect(within(b), s.Addr(), actors.Config{SessionTimeout: 2 * time.Second, Dial: (&dialer{write: fault.write}).Dial,
		ConnectTimeout: 500 * time.Millisecond, Auth: []zkbridge.Auth{{Scheme: "digest", Credential: "me:secret"}}})
	must(b, err)
	defer locks.Close()
	mu := locks.Mutex(b.path)

	lost := func(err error) bool { return errors.Is(err, actors.ErrSessionLost) }
	before := lock(b, mu) // where there is no directory
	if err := before.Unlock(within(b)); err != nil && !lost(err) {
		b.Error(err)
	}
	theirs := lock(b, rival)
	f := mu.Acquire(within(b))
	zktest.Eventually(b, patience, func() bool {
		pending(b, f)
		return locks.Session().State == messages.SessionState_CONNECTED && len(b.nodes()) > 1
	}, "two nodes")
	unlock(b, theirs)
	g := result(b, f)
	next := rival.Acquire(within(b))
	if err := g.Verify(within(b)); err != nil && !lost(err) && !errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) {
		b.Error(err)
	}
	if isClosed(next.Done()) && g.Err() == nil {
		b.Error("two hold the lock")
	}
	if err := g.Unlock(within(b)); err != nil && !lost(err) {
		b.Error(err)
	}
	last := result(b, next)
	if last.Token().Compare(g.Token()) <= 0 {
		b.Errorf("token %v after %v", last.Token(), g.Token())
	}
	unlock(b, last)
	b.clean()
	return fault.sent
}
