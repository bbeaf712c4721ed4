package failures

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// TestWireFaults has the connection to a real ZooKeeper fail at each message that a client sends,
// in each way in which a network fails. The client holds the lock between two grants of another
// client.
func TestWireFaults(t *testing.T) {
	t.Parallel()
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		wireFaults(t, zktest.Own(t), networkFailures)
	})
	t.Run("three servers", func(t *testing.T) {
		wireFaults(t, locktest.Ensemble(t).Server, slices.DeleteFunc(slices.Clone(networkFailures), func(f networkFailure) bool { return !f.onEnsemble }))
	})
}

func wireFaults(t *testing.T, s *zktest.Server, failures []networkFailure) {
	messages := math.MaxInt
	for range 3 { // a client that stands still for a while connects again, and sends more
		messages = min(messages, holdInTurn(t, s, &wireFault{at: -1}))
	}
	sampled := sample.OneIn(t, 7)
	for _, failure := range failures {
		if !sampled() {
			continue
		}
		var missed atomic.Int32
		t.Run(failure.name, func(t *testing.T) {
			for at := range messages {
				t.Run(fmt.Sprint(at), func(t *testing.T) {
					t.Parallel()
					fault := &wireFault{failure: failure, at: at}
					holdInTurn(t, s, fault)
					if !fault.fired {
						missed.Add(1)
					}
				})
			}
		})
		// The number of messages depends a little on the order of events.
		if n := missed.Load(); n > 2 {
			t.Errorf("%s: %d of %d messages were not sent", failure.name, n, messages)
		}
	}
}

// networkFailure is a way in which a connection fails at a message.
type networkFailure struct {
	name string
	// write takes the place of the connection's Write.
	write func(c *locktest.WireConn, message []byte) (int, error)
	// handshakes is how many of the handshakes after the failure fail, too: by the first message
	// of a connection, or by the second, which authenticates.
	handshakes int
	// onEnsemble: the failure is worth a test with several servers, of which another one has the
	// outcome.
	onEnsemble bool
}

var networkFailures = []networkFailure{
	{name: "cut before", write: func(c *locktest.WireConn, message []byte) (int, error) { return c.Cut() }},
	{name: "cut within the request", write: func(c *locktest.WireConn, message []byte) (int, error) {
		c.Conn.Write(message[:len(message)/2])
		return c.Cut()
	}},
	{name: "cut before the reply", write: (*locktest.WireConn).Unanswered, onEnsemble: true},
	{name: "cut within the reply", write: func(c *locktest.WireConn, message []byte) (int, error) {
		c.SetLimit(10)
		return c.Conn.Write(message)
	}},
	{name: "late", write: func(c *locktest.WireConn, message []byte) (int, error) {
		<-time.After(100 * time.Millisecond)
		return c.Conn.Write(message)
	}},
	{name: "black hole", onEnsemble: true, write: func(c *locktest.WireConn, message []byte) (int, error) {
		c.SetLimit(0)
		return c.Conn.Write(message)
	}},
	{name: "cut before the reply, and in the handshakes", write: (*locktest.WireConn).Unanswered, handshakes: 2},
}

// wireFault is a failure at the message of one client with the number at, from 0. Pings do not
// count.
type wireFault struct {
	failure networkFailure
	at      int

	mu         sync.Mutex
	sent       int
	fired      bool
	handshakes int
}

// write is the OnWrite of a Network.
func (f *wireFault) write(c *locktest.WireConn, _ embedded.Op, message []byte) (int, error) {
	if f.fires(c.Writes == 1, c.Writes == 2) {
		return f.failure.write(c, message)
	}
	return c.Conn.Write(message)
}

// fires counts the message, and reports whether the connection fails at it. The message may be the
// first or the second of its connection.
func (f *wireFault) fires(first, second bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent++
	if !f.fired && f.sent-1 == f.at {
		f.fired = true
		return true
	}
	if f.fired && f.handshakes < f.failure.handshakes && (f.handshakes == 0 && first || f.handshakes == 1 && second) {
		f.handshakes++
		return true
	}
	return false
}

// holdInTurn has two sessions hold the lock in turn. It returns how many messages the first has
// sent.
func holdInTurn(t *testing.T, s *zktest.Server, fault *wireFault) int {
	b := &locktest.Fixture{T: t, Server: s, LockPath: s.Path(t)}
	other := b.Mutex()
	locks, err := actors.Connect(locktest.Within(b), s.Addr(), actors.Config{SessionTimeout: 2 * time.Second, Dial: (&locktest.Network{OnWrite: fault.write}).Dial,
		ConnectTimeout: 500 * time.Millisecond, Auth: []zkbridge.Auth{{Scheme: "digest", Credential: "me:secret"}}})
	locktest.Must(b, err)
	defer locks.Close()
	mu := locks.Mutex(b.LockPath)

	lost := func(err error) bool { return errors.Is(err, actors.ErrSessionLost) }
	before := locktest.Lock(b, mu) // where there is no directory
	if err := before.Unlock(locktest.Within(b)); err != nil && !lost(err) {
		b.Error(err)
	}
	theirs := locktest.Lock(b, other)
	f := mu.Acquire(locktest.Within(b))
	zktest.Eventually(b, zktest.TimeLimit, func() bool {
		locktest.Pending(b, f)
		return locks.Session().State == messages.SessionState_CONNECTED && len(b.LockNodes()) > 1
	}, "two nodes")
	locktest.Unlock(b, theirs)
	g := locktest.Result(b, f)
	next := other.Acquire(locktest.Within(b))
	if err := g.Verify(locktest.Within(b)); err != nil && !lost(err) && !errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) {
		b.Error(err)
	}
	if locktest.IsClosed(next.Done()) && g.Err() == nil {
		b.Error("two hold the lock")
	}
	if err := g.Unlock(locktest.Within(b)); err != nil && !lost(err) {
		b.Error(err)
	}
	last := locktest.Result(b, next)
	locktest.ExpectIncreasing(b, g.Token(), last.Token())
	locktest.Unlock(b, last)
	b.Clean()
	fault.mu.Lock() // the session of the lock may send more
	defer fault.mu.Unlock()
	return fault.sent
}
