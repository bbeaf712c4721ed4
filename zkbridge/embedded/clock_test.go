package embedded_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Advance takes no time, in a bubble or not; here the bubble proves it.
func TestAdvance(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		start := time.Now()
		c, gone := mem(t, s, 10*time.Second), mem(t, s, 10*time.Second)
		exists := func(path string) bool { return c.call(embedded.OpExists, path, false).err == 0 }
		c.answer(create(c, "/mine"))
		gone.answer(create(gone, "/other"))
		c.call(embedded.OpCreateTTL, "/ttl", []byte(nil), open, 5, int64(5000))
		c.call(embedded.OpCreateContainer, "/dir", []byte(nil), open, 4)
		c.call(embedded.OpCreate, "/dir/a", []byte(nil), open, 0)
		c.call(embedded.OpDelete, "/dir/a", -1)
		gone.nc.Close()
		synctest.Wait()
		want(t, "all there", exists("/ttl") && exists("/dir") && exists("/other"), true)
		s.Advance(4 * time.Second)
		want(t, "the emptied container", exists("/dir"), false)
		want(t, "in time", exists("/ttl") && exists("/other"), true)
		s.Advance(3 * time.Second)
		want(t, "the outlived node", exists("/ttl"), false)
		want(t, "still in time", exists("/other"), true)
		s.Advance(24 * time.Hour)
		want(t, "the session that had gone", exists("/other"), false)
		want(t, "the session that is connected", exists("/mine"), true)
		want(t, "time that passed", time.Since(start), time.Duration(0))

		before := time.Now().Add(24 * time.Hour)
		r := c.call(embedded.OpCreate2, "/late", []byte(nil), open, 1)
		d := unpack{t: t, b: r.body}
		d.string()
		d.take(16)
		want(t, "nodes have the new time", time.UnixMilli(d.long()).After(before), true)
	})
}

// A client whose pings are not heard loses its session.
func TestAdvanceExpiresTheUnheard(t *testing.T) {
	for name, silence := range map[string]func(*embedded.Server, *raw){
		"paused": func(s *embedded.Server, _ *raw) { s.Pause() },
		"black hole": func(s *embedded.Server, c *raw) {
			fault := s.Inject(embedded.Fault{Session: c.id, Action: embedded.BlackHole})
			c.request(embedded.OpSync, "/")
			<-fault.Fired()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *embedded.Server) {
				c := mem(t, s, 10*time.Second)
				silence(s, c)
				s.Advance(8 * time.Second)
				want(t, "in time", len(s.Sessions()), 1)
				s.Advance(5 * time.Second)
				want(t, "expired", len(s.Sessions()), 0)
			})
		})
	}
}

// A delay ends when the clock gets there, and in the order of time.
func TestAdvanceEndsDelays(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		start := time.Now()
		s.Inject(embedded.Fault{Op: embedded.OpCreate, Action: embedded.DelayRequest, Delay: 7 * time.Second})
		c := mem(t, s, 10*time.Second)
		xid := create(c, "/x")
		synctest.Wait()
		s.Advance(time.Minute)
		want(t, "create", c.answer(xid).err, 0)
		want(t, "the session lives on", len(s.Sessions()), 1)
		want(t, "time that passed", time.Since(start), time.Duration(0))
	})
}
