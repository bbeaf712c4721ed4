package embedded_test

import (
	"context"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// A server that was halted keeps its data and its sessions, whose timeouts begin anew.
func TestRestart(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		const timeout = 4 * time.Second
		c, idle := memorySession(t, s, timeout), memorySession(t, s, timeout)
		c.answer(sendCreate(c, "/x"))
		idle.answer(sendCreate(idle, "/idle"))
		c.call(embedded.OpExists, "/x", true)
		delayed := s.Inject(embedded.Fault{Op: embedded.OpDelete, Action: embedded.DelayRequest, Delay: time.Minute})
		c.request(embedded.OpDelete, "/x", int32(-1))
		<-delayed.Fired()
		time.Sleep(3 * time.Second)
		s.Pause()
		idle.request(embedded.OpDelete, "/idle", int32(-1))
		s.Halt()
		s.Halt()
		want(t, "cut", c.closed(), true)
		if _, err := s.Dial(context.Background(), "", ""); err == nil {
			t.Error("a halted server takes connections")
		}
		time.Sleep(time.Hour)
		want(t, "sessions", len(s.Sessions()), 2)
		s.Restart()
		s.Restart()
		time.Sleep(3 * time.Second)
		next := dialMemory(t, s, "")
		want(t, "connected", next.connect(timeout, c.id, c.password, c.zxid), true)
		want(t, "watches", s.Watches(), 0)
		time.Sleep(3 * time.Second)
		want(t, "request lost with its connection", next.call(embedded.OpExists, "/x", false).err, 0)
		want(t, "node of the session that did not come back", next.call(embedded.OpExists, "/idle", false).err, -101)
	})
}
