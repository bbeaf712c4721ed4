package embedded_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// inBubble runs f in virtual time on a server in memory.
func inBubble(t *testing.T, f func(t *testing.T, s *embedded.Server)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := embedded.Start(embedded.Config{MemoryOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		f(t, s)
	})
}

// mem opens a session over an in-memory connection.
func mem(t *testing.T, s *embedded.Server, timeout time.Duration) *raw {
	t.Helper()
	c := pipe(t, s)
	if !c.attach(timeout, 0, make([]byte, 16), 0) {
		t.Fatal("no session")
	}
	return c
}

func pipe(t *testing.T, s *embedded.Server) *raw {
	t.Helper()
	nc, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rawOn(t, nc)
}

// create sends a create of an ephemeral node.
func create(c *raw, path string) int32 {
	return c.request(embedded.OpCreate, path, []byte(nil), open, 1)
}

func TestFaultActions(t *testing.T) {
	for _, test := range []struct {
		action             embedded.Action
		replied, cut, done bool
	}{
		{embedded.CutBefore, false, true, false},
		{embedded.DropReply, false, true, true},
		{embedded.CutAfter, true, true, true},
		{embedded.BlackHole, false, false, false},
		{embedded.BlackHoleAfter, false, false, true},
		{embedded.ExpireSession, false, true, false},
	} {
		t.Run(test.action.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *embedded.Server) {
				fault := s.Inject(embedded.Fault{Op: embedded.OpCreate, Path: "/x", Nth: 2, Action: test.action})
				c, other := mem(t, s, 40*time.Second), mem(t, s, 40*time.Second)
				c.answer(create(c, "/x1"))
				c.answer(create(c, "/y"))
				want(t, "firings", len(fault.Firings()), 0)
				c.nc.SetReadDeadline(time.Now().Add(10 * time.Second))
				create(c, "/x2")
				_, err := c.read()
				want(t, "replied", err == nil, test.replied)
				_, err = c.read()
				want(t, "cut", err != nil && isEOF(err), test.cut)
				<-fault.Fired()
				firing := fault.Firings()[0]
				want(t, "firing", fmt.Sprint(firing.Op, firing.Path, firing.Session == c.id), "create/x2true")
				want(t, "executed", other.call(embedded.OpExists, "/x2", false).err == 0, test.done)
				want(t, "session", len(s.Sessions()), map[bool]int{false: 2, true: 1}[test.action == embedded.ExpireSession])
			})
		})
	}
}

func isEOF(err error) bool {
	return err.Error() == "EOF" || err.Error() == "io: read/write on closed pipe"
}

func TestFaultDelays(t *testing.T) {
	for _, test := range []struct {
		action embedded.Action
		early  int32 // what another session gets for the node meanwhile
	}{{embedded.DelayRequest, -101}, {embedded.DelayReply, 0}} {
		t.Run(test.action.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *embedded.Server) {
				s.Inject(embedded.Fault{Op: embedded.OpCreate, Action: test.action, Delay: 7 * time.Second})
				c, other := mem(t, s, 40*time.Second), mem(t, s, 40*time.Second)
				start := time.Now()
				first := create(c, "/x")
				second := c.request(embedded.OpExists, "/x", false)
				want(t, "meanwhile", other.call(embedded.OpExists, "/x", false).err, test.early)
				want(t, "create", c.answer(first).err, 0)
				want(t, "exists", c.answer(second).err, 0)
				want(t, "after", time.Since(start), 7*time.Second)
			})
		})
	}
}

// A delayed request is executed even if its client has moved on.
func TestDelayedRequestOutlivesConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		s.Inject(embedded.Fault{Op: embedded.OpCreate, Action: embedded.DelayRequest, Delay: 3 * time.Second})
		c := mem(t, s, 40*time.Second)
		create(c, "/late")
		c.nc.Close()
		next := pipe(t, s)
		want(t, "attached", next.attach(40*time.Second, c.id, c.password, 0), true)
		want(t, "before", next.call(embedded.OpExists, "/late", true).err, -101)
		synctest.Wait()
		time.Sleep(4 * time.Second) // virtual
		want(t, "after", next.call(embedded.OpExists, "/late", false).err, 0)
		want(t, "events", next.events, []string{"1 3 /late"})
	})
}

func TestFaultCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		c, other := mem(t, s, 40*time.Second), mem(t, s, 40*time.Second)
		fault := s.Inject(embedded.Fault{Session: other.id, Nth: 2, Times: 2, Action: embedded.DelayReply})
		for range 3 {
			c.call(embedded.OpExists, "/", false)
			c.call(embedded.OpPing)
		}
		want(t, "other session", len(fault.Firings()), 0)
		for range 5 {
			other.call(embedded.OpExists, "/", false)
			other.call(embedded.OpPing)
		}
		want(t, "firings", len(fault.Firings()), 2)

		always := s.Inject(embedded.Fault{Op: embedded.OpSync, Times: -1, Action: embedded.DelayReply})
		for range 3 {
			c.call(embedded.OpSync, "/")
		}
		always.Remove()
		c.call(embedded.OpSync, "/")
		want(t, "until removed", len(always.Firings()), 3)

		inMulti := s.Inject(embedded.Fault{Op: embedded.OpMulti, Path: "/deep", Action: embedded.CutBefore})
		check := func(path string) packed { return pack(embedded.OpCheck, false, -1, path, -1) }
		end := packed(pack(-1, true, -1))
		c.call(embedded.OpMulti, check("/"), end)
		want(t, "other path", len(inMulti.Firings()), 0)
		c.request(embedded.OpMulti, check("/"), check("/deep/er"), end)
		want(t, "closed", c.closed(), true)
	})
}

func TestFaultsAtConnect(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		s.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore})
		if _, err := s.Dial(t.Context()); err == nil {
			t.Error("not refused")
		}
		s.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.BlackHole})
		c := pipe(t, s)
		c.nc.SetDeadline(time.Now().Add(time.Minute))
		c.send(pack(0, int64(0), 10000, int64(0), make([]byte, 16), false))
		_, err := c.read()
		want(t, "black hole", err, "read pipe: i/o timeout")
		want(t, "sessions", len(s.Sessions()), 0)

		s.Inject(embedded.Fault{Op: embedded.OpConnect, Action: embedded.DropReply})
		c = pipe(t, s)
		c.send(pack(0, int64(0), 10000, int64(0), make([]byte, 16), false))
		want(t, "closed", c.closed(), true)
		want(t, "sessions", len(s.Sessions()), 1)
	})
}

func TestPause(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		c, other := mem(t, s, 40*time.Second), mem(t, s, 4*time.Second)
		other.answer(create(other, "/gone"))
		c.call(embedded.OpExists, "/gone", true)
		s.Pause()
		xid := create(c, "/x")
		late := pipe(t, s)
		late.send(pack(0, int64(0), 10000, int64(0), make([]byte, 16), false))
		c.nc.SetReadDeadline(time.Now().Add(30 * time.Second))
		_, err := c.read()
		want(t, "paused", err, "read pipe: i/o timeout")
		want(t, "expired meanwhile", len(s.Sessions()), 1)
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
		c, other := mem(t, s, 10*time.Second), mem(t, s, 10*time.Second)
		c.answer(create(c, "/x"))
		other.call(embedded.OpExists, "/x", true)
		want(t, "watches", s.Watches(), 1)
		want(t, "dump", s.Dump(), fmt.Sprintf("/x czxid=3 version=0 ephemeral=%#x \"\"\n", c.id))
		want(t, "expire", s.Expire(c.id), true)
		want(t, "again", s.Expire(c.id), false)
		want(t, "closed", c.closed(), true)
		other.call(embedded.OpPing)
		want(t, "events", other.events, []string{"2 3 /x"})
		again := pipe(t, s)
		want(t, "attached", again.attach(time.Second, c.id, c.password, 0), false)

		s.DropConnections()
		want(t, "dropped", other.closed(), true)
		synctest.Wait()
		want(t, "sessions", fmt.Sprint(s.Sessions()[0].Connected, len(s.Sessions())), "false 1")
		again = pipe(t, s)
		want(t, "attached", again.attach(10*time.Second, other.id, other.password, other.zxid), true)
	})
}

func TestFreeze(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		lagging, live := mem(t, s, 40*time.Second), mem(t, s, 40*time.Second)
		live.answer(create(live, "/old"))
		lagging.call(embedded.OpGetChildren, "/", true)
		s.Freeze(lagging.id)
		before := s.Zxid()
		live.answer(create(live, "/new"))
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

		live.answer(create(live, "/third"))
		want(t, "lags again", lagging.call(embedded.OpExists, "/third", true).err, -101)
		want(t, "own write", lagging.answer(create(lagging, "/own")).err, 0)
		want(t, "events first", lagging.takeEvents(), []string{"1 3 /third"})
		want(t, "own node", lagging.call(embedded.OpExists, "/own", false).err, 0)

		lagging.call(embedded.OpExists, "/fourth", true)
		live.answer(create(live, "/fourth"))
		s.Thaw(0)
		lagging.call(embedded.OpPing)
		want(t, "thawed", lagging.takeEvents(), []string{"1 3 /fourth"})
		live.answer(create(live, "/fifth"))
		want(t, "live again", lagging.call(embedded.OpExists, "/fifth", false).err, 0)
	})
}

func TestFreezeAll(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		writer := mem(t, s, 40*time.Second)
		s.Freeze(0)
		reader := mem(t, s, 40*time.Second)
		writer.answer(create(writer, "/x"))
		want(t, "reader", reader.call(embedded.OpExists, "/x", false).err, -101)
		want(t, "writer", writer.call(embedded.OpExists, "/x", false).err, 0)
		late := mem(t, s, 40*time.Second)
		want(t, "who comes later", late.call(embedded.OpExists, "/x", false).err, 0)
		s.Thaw(reader.id)
		want(t, "reader", reader.call(embedded.OpExists, "/x", false).err, 0)
	})
}

// The whole client works in virtual time as well.
func TestClientInBubble(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		c := client(t, s)
		_, err := c.Create("/x", nil, zk.FlagEphemeral, open)
		want(t, "create", err, nil)
		start := time.Now()
		time.Sleep(time.Hour) // virtual
		want(t, "alive", len(s.Sessions()), 1)
		s.DropConnections()
		time.Sleep(3 * time.Second)
		_, _, err = c.Exists("/x")
		want(t, "after an hour", fmt.Sprint(err, time.Since(start) > time.Hour), "<nil> true")
		c.Close()
	})
}
