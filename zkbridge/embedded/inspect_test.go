package embedded_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

func TestPause(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		c, other := memorySession(t, s, 40*time.Second), memorySession(t, s, 4*time.Second)
		other.answer(sendCreate(other, "/gone"))
		c.call(embedded.OpExists, "/gone", true)
		s.Pause()
		xid := sendCreate(c, "/x")
		late := dialMemory(t, s, "")
		late.send(pack(0, int64(0), 10000, int64(0), make([]byte, 16), false))
		c.nc.SetReadDeadline(time.Now().Add(30 * time.Second))
		_, err := c.read()
		want(t, "paused", err, "read pipe: i/o timeout")
		want(t, "expired during the pause", len(s.Sessions()), 1)
		s.Resume()
		c.nc.SetReadDeadline(time.Time{})
		want(t, "create", c.answer(xid).err, 0)
		want(t, "events", c.events, []string{"2 3 /gone"})
		want(t, "cut", other.closed(), true)
		late.frame()
		want(t, "sessions", len(s.Sessions()), 2)
	})
}

func TestExpireAndDrop(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		c, other := memorySession(t, s, 10*time.Second), memorySession(t, s, 10*time.Second)
		c.answer(sendCreate(c, "/x"))
		other.call(embedded.OpExists, "/x", true)
		want(t, "watches", s.Watches(), 1)
		want(t, "dump", s.Dump(), fmt.Sprintf("/x czxid=3 version=0 ephemeral=%#x \"\"\n", c.id))
		want(t, "expire", s.Expire(c.id), true)
		want(t, "again", s.Expire(c.id), false)
		want(t, "closed", c.closed(), true)
		other.call(embedded.OpPing)
		want(t, "events", other.events, []string{"2 3 /x"})
		again := dialMemory(t, s, "")
		want(t, "connected", again.connect(time.Second, c.id, c.password, 0), false)

		s.DropConnections()
		want(t, "dropped", other.closed(), true)
		synctest.Wait()
		want(t, "sessions", fmt.Sprint(s.Sessions()[0].Connected, len(s.Sessions())), "false 1")
		again = dialMemory(t, s, "")
		want(t, "connected", again.connect(10*time.Second, other.id, other.password, other.zxid), true)
	})
}

func TestFreeze(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		lagging, live := memorySession(t, s, 40*time.Second), memorySession(t, s, 40*time.Second)
		live.answer(sendCreate(live, "/old"))
		lagging.call(embedded.OpGetChildren, "/", true)
		s.Freeze(lagging.id)
		before := s.Zxid()
		live.answer(sendCreate(live, "/new"))
		live.call(embedded.OpDelete, "/old", -1)

		want(t, "old node", lagging.call(embedded.OpGetData, "/old", true).err, 0)
		r := lagging.call(embedded.OpExists, "/new", true)
		want(t, "new node", r.err, -101)
		want(t, "zxid", r.zxid, before)
		want(t, "no events yet", len(lagging.events), 0)
		want(t, "live", live.call(embedded.OpExists, "/new", false).err, 0)

		lagging.call(embedded.OpSync, "/")
		want(t, "caught up", lagging.takeEvents(), []string{"1 3 /new", "4 3 /", "2 3 /old"})
		want(t, "new node", lagging.call(embedded.OpExists, "/new", false).err, 0)

		live.answer(sendCreate(live, "/third"))
		want(t, "lags again", lagging.call(embedded.OpExists, "/third", true).err, -101)
		want(t, "own write", lagging.answer(sendCreate(lagging, "/own")).err, 0)
		want(t, "events first", lagging.takeEvents(), []string{"1 3 /third"})
		want(t, "own node", lagging.call(embedded.OpExists, "/own", false).err, 0)

		lagging.call(embedded.OpExists, "/fourth", true)
		live.answer(sendCreate(live, "/fourth"))
		s.Thaw(0)
		lagging.call(embedded.OpPing)
		want(t, "thawed", lagging.takeEvents(), []string{"1 3 /fourth"})
		live.answer(sendCreate(live, "/fifth"))
		want(t, "live again", lagging.call(embedded.OpExists, "/fifth", false).err, 0)
	})
}

func TestFreezeAll(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		writer := memorySession(t, s, 40*time.Second)
		s.Freeze(0)
		reader := memorySession(t, s, 40*time.Second)
		writer.answer(sendCreate(writer, "/x"))
		want(t, "reader", reader.call(embedded.OpExists, "/x", false).err, -101)
		want(t, "writer", writer.call(embedded.OpExists, "/x", false).err, 0)
		late := memorySession(t, s, 40*time.Second)
		want(t, "a later session", late.call(embedded.OpExists, "/x", false).err, 0)
		s.Thaw(reader.id)
		want(t, "reader", reader.call(embedded.OpExists, "/x", false).err, 0)
	})
}
