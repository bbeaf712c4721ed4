package zkbridge

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A bridge that gives up a session, or fails, closes it Margin later, but not before its last
// promise is over.
func TestPromiseIsKept(t *testing.T) {
	t.Parallel()
	const timeout, margin, limit = 20 * time.Second, time.Second, 8 * time.Second
	for name, giveUp := range map[string]func(*internals){"lost": (*internals).loseSession, "failed": (*internals).panicInActor} {
		for _, promised := range []time.Duration{0, limit} {
			zktest.Bubble(t, func(t *testing.T) {
				s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 2 * time.Second})
				b := connected(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Margin: margin, Dial: s.Dial})
				u := newUser(t, b)
				u.subscribe()
				u.waitState(messages.SessionState_CONNECTED)
				u.created("/d", "n-")
				id := b.Session().ID
				if promised > 0 {
					if v := b.Promise(1, limit); v != limit {
						t.Fatalf("promised %v of %v", v, limit)
					}
					b.Promise(1, limit/2) // a shorter one changes nothing
				}
				began := time.Now()
				giveUp(b)
				gone := func() bool {
					for _, session := range s.Sessions() {
						if session.ID == id {
							return false
						}
					}
					return true
				}
				for !gone() {
					<-time.After(10 * time.Millisecond) // virtual
				}
				want := max(margin, promised+promised/200)
				if after := time.Since(began); after < want || after > want+time.Second {
					t.Errorf("%s, %v promised: the session is closed after %v, want %v", name, promised, after, want)
				}
				b.Close()
				<-b.ended
			})
		}
	}
}

// A promise ends at the deadline, also while there is no connection, and none is made for a session
// that is lost or of another epoch.
func TestPromiseEnds(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		const timeout, margin = 20 * time.Second, 4 * time.Second
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 2 * time.Second})
		b := connected(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Margin: margin, Dial: s.Dial})
		u := newUser(t, b)
		u.subscribe()
		u.waitState(messages.SessionState_CONNECTED)
		for _, epoch := range []uint64{0, 2} {
			if v := b.Promise(epoch, time.Second); v > 0 {
				t.Errorf("%v promised in epoch %d", v, epoch)
			}
		}
		s.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
		s.DropConnections()
		u.waitState(messages.SessionState_SUSPENDED)
		for b.Session().State == messages.SessionState_SUSPENDED {
			v, left := b.Promise(1, time.Minute), time.Until(b.Session().Deadline)
			if v > left || v < left-time.Millisecond {
				t.Errorf("%v promised, %v left", v, left)
			}
			<-time.After(time.Second) // virtual
		}
		if v := b.Promise(1, time.Minute); v > 0 {
			t.Errorf("%v promised in a lost session", v)
		}
		b.Close()
		<-b.ended
		if v := b.Promise(1, time.Minute); v > 0 {
			t.Errorf("%v promised after Close", v)
		}
	})
}

// While promises are asked for, a promise is always nearly as long as it can be.
func TestPromisesAreLong(t *testing.T) {
	t.Parallel()
	const timeout, margin = 30 * time.Second, 12 * time.Second
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: 2 * time.Second})
		b := connected(t, Config{Servers: "embedded:1", SessionTimeout: timeout, Margin: margin, Dial: s.Dial})
		least := timeout
		for i := range 100 {
			v := b.Promise(1, time.Minute)
			if i >= 30 { // at first the pings are those of a bridge that has promised nothing
				least = min(least, v)
			}
			<-time.After(700 * time.Millisecond) // virtual
		}
		if want := timeout - timeout/200 - margin - margin/200 - 2*time.Second; least < want {
			t.Errorf("%v promised, want %v at least", least, want)
		}
		b.Close()
		<-b.ended
	})
}
