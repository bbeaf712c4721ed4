package embedded_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Advance takes no time. The bubble proves that, and Advance works without one as well.
func TestAdvance(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		start := time.Now()
		c, other := memorySession(t, s, 10*time.Second), memorySession(t, s, 10*time.Second)
		exists := func(path string) bool { return c.call(embedded.OpExists, path, false).err == 0 }
		c.answer(sendCreate(c, "/mine"))
		other.answer(sendCreate(other, "/other"))
		c.call(embedded.OpCreateTTL, "/ttl", []byte(nil), open, 5, int64(5000))
		c.call(embedded.OpCreateContainer, "/dir", []byte(nil), open, 4)
		c.call(embedded.OpCreate, "/dir/a", []byte(nil), open, 0)
		c.call(embedded.OpDelete, "/dir/a", -1)
		other.nc.Close()
		synctest.Wait()
		want(t, "all exist", exists("/ttl") && exists("/dir") && exists("/other"), true)
		s.Advance(4 * time.Second)
		want(t, "the emptied container", exists("/dir"), false)
		want(t, "in time", exists("/ttl") && exists("/other"), true)
		s.Advance(3 * time.Second)
		want(t, "the outlived node", exists("/ttl"), false)
		want(t, "still in time", exists("/other"), true)
		s.Advance(24 * time.Hour)
		want(t, "the session without a connection", exists("/other"), false)
		want(t, "the session with a connection", exists("/mine"), true)
		want(t, "time that passed", time.Since(start), time.Duration(0))

		before := time.Now().Add(24 * time.Hour)
		r := c.call(embedded.OpCreate2, "/late", []byte(nil), open, 1)
		d := unpack{t: t, b: r.body}
		d.string()
		d.take(16)
		want(t, "nodes have the new time", time.UnixMilli(d.long()).After(before), true)
	})
}

// A client whose pings do not arrive loses its session.
func TestAdvanceExpiresSilentSessions(t *testing.T) {
	for name, silence := range map[string]func(*embedded.Server, *rawClient){
		"paused": func(s *embedded.Server, _ *rawClient) { s.Pause() },
		"black hole": func(s *embedded.Server, c *rawClient) {
			fault := s.Inject(embedded.Fault{Session: c.id, Action: embedded.BlackHole})
			c.request(embedded.OpSync, "/")
			<-fault.Fired()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *embedded.Server) {
				c := memorySession(t, s, 10*time.Second)
				silence(s, c)
				s.Advance(8 * time.Second)
				want(t, "in time", len(s.Sessions()), 1)
				s.Advance(5 * time.Second)
				want(t, "expired", len(s.Sessions()), 0)
			})
		})
	}
}

// Delays end when the clock reaches their ends, in the order of time.
func TestAdvanceEndsDelays(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		start := time.Now()
		s.Inject(embedded.Fault{Op: embedded.OpCreate, Action: embedded.DelayRequest, Delay: 7 * time.Second})
		c := memorySession(t, s, 10*time.Second)
		xid := sendCreate(c, "/x")
		synctest.Wait()
		s.Advance(time.Minute)
		want(t, "create", c.answer(xid).err, 0)
		want(t, "the session goes on", len(s.Sessions()), 1)
		want(t, "time that passed", time.Since(start), time.Duration(0))
	})
}
