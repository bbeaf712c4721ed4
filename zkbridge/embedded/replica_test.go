package embedded_test

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// connectAt connects to a server of an ensemble. It opens a session, or resumes the session of
// another connection.
func connectAt(t *testing.T, s *embedded.Server, address string, session *rawClient) *rawClient {
	t.Helper()
	c := dialMemory(t, s, address)
	if session == nil {
		session = newRaw(t, nil)
	}
	want(t, "session", c.connect(40*time.Second, session.id, session.password, session.zxid), true)
	return c
}

// All sessions at a frozen address share one state, which is older than the state of the others.
func TestFreezeAddress(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		leader, reader, writer := connectAt(t, s, "a:1", nil), connectAt(t, s, "b:1", nil), connectAt(t, s, "b:1", nil)
		s.FreezeAddress("b:1")
		before := s.Zxid()
		leader.answer(sendCreate(leader, "/x"))
		for _, c := range []*rawClient{reader, writer} {
			r := c.call(embedded.OpExists, "/x", true)
			want(t, "old state", r.err, -101)
			want(t, "zxid", r.zxid, before)
		}
		want(t, "write", writer.answer(sendCreate(writer, "/y")).err, 0)
		want(t, "the writer gets its event", writer.takeEvents(), []string{"1 3 /x"})
		want(t, "and the other session as well", reader.call(embedded.OpExists, "/y", false).err, 0)
		want(t, "event", reader.takeEvents(), []string{"1 3 /x"})

		reader.call(embedded.OpExists, "/z", true)
		leader.answer(sendCreate(leader, "/z"))
		want(t, "lags again", reader.call(embedded.OpExists, "/z", false).err, -101)
		late := connectAt(t, s, "b:1", nil) // the session is a transaction, too
		want(t, "a new session", late.call(embedded.OpExists, "/z", false).err, 0)
		reader.call(embedded.OpPing)
		want(t, "event", reader.takeEvents(), []string{"1 3 /z"})

		reader.call(embedded.OpExists, "/end", true)
		leader.answer(sendCreate(leader, "/end"))
		s.ThawAddress("b:1")
		s.ThawAddress("c:1")
		reader.call(embedded.OpPing)
		want(t, "thawed", reader.takeEvents(), []string{"1 3 /end"})
	})
}

// A server that lags refuses a session that has seen a later state. Other sessions read the old
// state there, and their watches are compared with it.
func TestMoveToALaggingServer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		leader, client := connectAt(t, s, "a:1", nil), connectAt(t, s, "a:1", nil)
		leader.answer(sendCreate(leader, "/x"))
		client.call(embedded.OpExists, "/x", false)
		s.FreezeAddress("b:1")
		want(t, "delete", leader.call(embedded.OpDelete, "/x", -1).err, 0)

		moved := connectAt(t, s, "b:1", client)
		want(t, "old state", moved.call(embedded.OpExists, "/x", false).err, 0)
		moved.call(embedded.OpSetWatches, moved.zxid, []string{"/x"}, []string(nil), []string(nil))
		want(t, "no event yet", len(moved.takeEvents()), 0)
		moved.call(embedded.OpSync, "/")
		want(t, "event", moved.takeEvents(), []string{"2 3 /x"})

		back := connectAt(t, s, "a:1", moved)
		leader.answer(sendCreate(leader, "/later"))
		want(t, "later state", back.call(embedded.OpExists, "/later", false).err, 0)
		refused := dialMemory(t, s, "b:1")
		refused.send(pack(0, back.zxid, int32(40_000), back.id, back.password, false))
		want(t, "refused", refused.closed(), true)
		want(t, "alive elsewhere", back.call(embedded.OpExists, "/later", false).err, 0)
	})
}

// A frozen session never reads an older state than before, at any server.
func TestFreezeAtALaggingServer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		leader, client := connectAt(t, s, "a:1", nil), connectAt(t, s, "b:1", nil)
		s.FreezeAddress("b:1")
		client.call(embedded.OpExists, "/x", true)
		leader.answer(sendCreate(leader, "/x"))
		s.Freeze(client.id)
		want(t, "the present state", client.call(embedded.OpExists, "/x", false).err, 0)
		want(t, "event", client.takeEvents(), []string{"1 3 /x"})
		client.call(embedded.OpExists, "/y", true)
		leader.answer(sendCreate(leader, "/y"))
		want(t, "lags", client.call(embedded.OpExists, "/y", false).err, -101)
		s.Thaw(client.id)
		want(t, "the state then", client.call(embedded.OpExists, "/y", false).err, 0)
		want(t, "event", client.takeEvents(), []string{"1 3 /y"})
		leader.answer(sendCreate(leader, "/z"))
		want(t, "lags with its server", client.call(embedded.OpExists, "/z", false).err, -101)
	})
}
