package embedded_test

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// dialAt connects to a server of an ensemble. It opens a session, or goes on with the session of
// another connection.
func dialAt(t *testing.T, s *embedded.Server, address string, of *raw) *raw {
	t.Helper()
	nc, err := s.Dial(t.Context(), "", address)
	if err != nil {
		t.Fatal(err)
	}
	c := rawOn(t, nc)
	if of == nil {
		want(t, "session", c.attach(40*time.Second, 0, make([]byte, 16), 0), true)
	} else {
		want(t, "session", c.attach(40*time.Second, of.id, of.password, of.zxid), true)
	}
	return c
}

// All sessions at one address share a state, which is older than the state of the others.
func TestFreezeAddress(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		leader, reader, writer := dialAt(t, s, "a:1", nil), dialAt(t, s, "b:1", nil), dialAt(t, s, "b:1", nil)
		s.FreezeAddress("b:1")
		before := s.Zxid()
		leader.answer(create(leader, "/x"))
		for _, c := range []*raw{reader, writer} {
			r := c.call(embedded.OpExists, "/x", true)
			want(t, "old state", r.err, -101)
			want(t, "zxid", r.zxid, before)
		}
		want(t, "write", writer.answer(create(writer, "/y")).err, 0)
		want(t, "the writer hears first", writer.takeEvents(), []string{"1 3 /x"})
		want(t, "the other one, too", reader.call(embedded.OpExists, "/y", false).err, 0)
		want(t, "event", reader.takeEvents(), []string{"1 3 /x"})

		reader.call(embedded.OpExists, "/z", true)
		leader.answer(create(leader, "/z"))
		want(t, "lags again", reader.call(embedded.OpExists, "/z", false).err, -101)
		late := dialAt(t, s, "b:1", nil) // its session is a transaction, too
		want(t, "a new session", late.call(embedded.OpExists, "/z", false).err, 0)
		reader.call(embedded.OpPing)
		want(t, "event", reader.takeEvents(), []string{"1 3 /z"})

		reader.call(embedded.OpExists, "/end", true)
		leader.answer(create(leader, "/end"))
		s.ThawAddress("b:1")
		s.ThawAddress("c:1")
		reader.call(embedded.OpPing)
		want(t, "thawed", reader.takeEvents(), []string{"1 3 /end"})
	})
}

// A session that moves to a server that lags is refused there if it has seen a later state, and reads
// the old state otherwise. What it watches then is compared with that state.
func TestMoveToALaggingServer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		leader, client := dialAt(t, s, "a:1", nil), dialAt(t, s, "a:1", nil)
		leader.answer(create(leader, "/x"))
		client.call(embedded.OpExists, "/x", false)
		s.FreezeAddress("b:1")
		want(t, "delete", leader.call(embedded.OpDelete, "/x", -1).err, 0)

		moved := dialAt(t, s, "b:1", client)
		want(t, "old state", moved.call(embedded.OpExists, "/x", false).err, 0)
		moved.call(embedded.OpSetWatches, moved.zxid, []string{"/x"}, []string(nil), []string(nil))
		want(t, "no event yet", len(moved.takeEvents()), 0)
		moved.call(embedded.OpSync, "/")
		want(t, "event", moved.takeEvents(), []string{"2 3 /x"})

		back := dialAt(t, s, "a:1", moved)
		leader.answer(create(leader, "/later"))
		want(t, "later state", back.call(embedded.OpExists, "/later", false).err, 0)
		nc, err := s.Dial(t.Context(), "", "b:1")
		if err != nil {
			t.Fatal(err)
		}
		refused := rawOn(t, nc)
		refused.send(pack(0, back.zxid, int32(40_000), back.id, back.password, false))
		want(t, "refused", refused.closed(), true)
		want(t, "alive elsewhere", back.call(embedded.OpExists, "/later", false).err, 0)
	})
}

// Sessions that lag of themselves never read an older state than before, at whatever server.
func TestFreezeAtALaggingServer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		leader, client := dialAt(t, s, "a:1", nil), dialAt(t, s, "b:1", nil)
		s.FreezeAddress("b:1")
		client.call(embedded.OpExists, "/x", true)
		leader.answer(create(leader, "/x"))
		s.Freeze(client.id)
		want(t, "the present state", client.call(embedded.OpExists, "/x", false).err, 0)
		want(t, "event", client.takeEvents(), []string{"1 3 /x"})
		client.call(embedded.OpExists, "/y", true)
		leader.answer(create(leader, "/y"))
		want(t, "lags", client.call(embedded.OpExists, "/y", false).err, -101)
		s.Thaw(client.id)
		want(t, "the state then", client.call(embedded.OpExists, "/y", false).err, 0)
		want(t, "event", client.takeEvents(), []string{"1 3 /y"})
		leader.answer(create(leader, "/z"))
		want(t, "lags with its server", client.call(embedded.OpExists, "/z", false).err, -101)
	})
}
