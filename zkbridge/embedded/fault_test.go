package embedded_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// inBubble runs f in virtual time on a server in memory.
func inBubble(t *testing.T, f func(t *testing.T, s *embedded.Server)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := embedded.Start(embedded.ServerConfig{MemoryOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		f(t, s)
	})
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
				c, other := memorySession(t, s, 40*time.Second), memorySession(t, s, 40*time.Second)
				c.answer(sendCreate(c, "/x1"))
				c.answer(sendCreate(c, "/y"))
				want(t, "firings", len(fault.Firings()), 0)
				c.timeLimit = 10 * time.Second
				sendCreate(c, "/x2")
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

// A request is answered with a code, executed or not, and the connection goes on.
func TestFaultCodes(t *testing.T) {
	for _, action := range []embedded.Action{embedded.Refuse, embedded.Misreport} {
		t.Run(action.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *embedded.Server) {
				s.Inject(embedded.Fault{Op: embedded.OpCreate, Action: action, Code: -122})
				c := memorySession(t, s, 40*time.Second)
				want(t, "code", c.answer(sendCreate(c, "/x")).err, -122)
				want(t, "executed", c.call(embedded.OpExists, "/x", false).err == 0, action == embedded.Misreport)
				want(t, "next", c.answer(sendCreate(c, "/y")).err, 0)
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
		during int32 // the error of another session that looks for the node meanwhile
	}{{embedded.DelayRequest, -101}, {embedded.DelayReply, 0}} {
		t.Run(test.action.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *embedded.Server) {
				s.Inject(embedded.Fault{Op: embedded.OpCreate, Action: test.action, Delay: 7 * time.Second})
				c, other := memorySession(t, s, 40*time.Second), memorySession(t, s, 40*time.Second)
				start := time.Now()
				first := sendCreate(c, "/x")
				second := c.request(embedded.OpExists, "/x", false)
				want(t, "meanwhile", other.call(embedded.OpExists, "/x", false).err, test.during)
				want(t, "create", c.answer(first).err, 0)
				want(t, "exists", c.answer(second).err, 0)
				want(t, "after", time.Since(start), 7*time.Second)
			})
		})
	}
}

// A delayed request is executed also if its client has another connection by then.
func TestDelayedRequestOutlivesConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		s.Inject(embedded.Fault{Op: embedded.OpCreate, Action: embedded.DelayRequest, Delay: 3 * time.Second})
		c := memorySession(t, s, 40*time.Second)
		sendCreate(c, "/late")
		synctest.Wait() // else the session may have its next connection before the server looks at the request
		c.nc.Close()
		next := dialMemory(t, s, "")
		want(t, "connected", next.connect(40*time.Second, c.id, c.password, 0), true)
		want(t, "before", next.call(embedded.OpExists, "/late", true).err, -101)
		synctest.Wait()
		time.Sleep(4 * time.Second) // virtual
		want(t, "after", next.call(embedded.OpExists, "/late", false).err, 0)
		want(t, "events", next.events, []string{"1 3 /late"})
	})
}

// A write over the session's next connection does not overtake the delayed one, whether or not the
// server has noticed the end of the first connection.
func TestDelayedRequestIsNotOvertaken(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		for _, path := range []string{"/closed", "/open"} {
			s.Inject(embedded.Fault{Op: embedded.OpCreate, Path: path, Action: embedded.DelayRequest, Delay: 3 * time.Second})
			c := memorySession(t, s, 40*time.Second)
			sendCreate(c, path)
			if path == "/closed" {
				c.nc.Close()
			}
			synctest.Wait()
			next := dialMemory(t, s, "")
			want(t, "connected", next.connect(40*time.Second, c.id, c.password, 0), true)
			want(t, "a read overtakes", next.call(embedded.OpExists, path, false).err, -101)
			want(t, "a write", next.call(embedded.OpDelete, "/none", -1).err, -101)
			want(t, "does not", next.call(embedded.OpExists, path, false).err, 0)
		}
	})
}

// A delayed request is executed before the next connection ends the session. Otherwise it would
// make a node without an owner.
func TestDelayedRequestDoesNotOutliveSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		s.Inject(embedded.Fault{Op: embedded.OpCreate, Path: "/first", Action: embedded.DelayRequest, Delay: 3 * time.Second})
		s.Inject(embedded.Fault{Op: embedded.OpCreate, Path: "/second", Action: embedded.DelayRequest, Delay: 5 * time.Second})
		c := memorySession(t, s, 40*time.Second)
		sendCreate(c, "/first")
		synctest.Wait()
		next := dialMemory(t, s, "")
		want(t, "connected", next.connect(40*time.Second, c.id, c.password, 0), true)
		sendCreate(next, "/second")
		next.request(embedded.OpCloseSession)
		synctest.Wait()
		time.Sleep(6 * time.Second) // virtual
		synctest.Wait()
		want(t, "sessions", len(s.Sessions()), 0)
		want(t, "nodes", s.Dump(), "")
	})
}

func TestFaultCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		c, other := memorySession(t, s, 40*time.Second), memorySession(t, s, 40*time.Second)
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
		if _, err := s.Dial(t.Context(), "", ""); err == nil {
			t.Error("not refused")
		}
		s.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.BlackHole})
		c := dialMemory(t, s, "")
		c.nc.SetDeadline(time.Now().Add(time.Minute))
		c.send(pack(0, int64(0), 10000, int64(0), make([]byte, 16), false))
		_, err := c.read()
		want(t, "black hole", err, "read pipe: i/o timeout")
		want(t, "sessions", len(s.Sessions()), 0)

		s.Inject(embedded.Fault{Op: embedded.OpConnect, Action: embedded.DropReply})
		c = dialMemory(t, s, "")
		c.send(pack(0, int64(0), 10000, int64(0), make([]byte, 16), false))
		want(t, "closed", c.closed(), true)
		want(t, "sessions", len(s.Sessions()), 1)
	})
}

// A fault of a session applies to a handshake that names the session.
func TestFaultsAtConnectOfASession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		c, other := memorySession(t, s, 10*time.Second), memorySession(t, s, 10*time.Second)
		again := func(c *rawClient) *rawClient {
			next := dialMemory(t, s, "")
			next.send(pack(0, int64(0), 10000, c.id, c.password, false))
			return next
		}
		fault := s.Inject(embedded.Fault{Op: embedded.OpConnect, Session: c.id, Nth: 2, Action: embedded.CutBefore})
		want(t, "another session", again(other).closed(), false)
		want(t, "the first", again(c).closed(), false)
		want(t, "the second", again(c).closed(), true)
		firings := fault.Firings()
		want(t, "firings", len(firings) == 1 && firings[0].Session == c.id && firings[0].Op == embedded.OpConnect, true)
		want(t, "the third", again(c).closed(), false)

		s.Inject(embedded.Fault{Op: embedded.OpConnect, Session: other.id, Action: embedded.StaleReads})
		stale := dialMemory(t, s, "")
		want(t, "connected", stale.connect(10*time.Second, other.id, other.password, 0), true)
		s.Inject(embedded.Fault{Op: embedded.OpConnect, Session: c.id, Action: embedded.ExpireSession})
		want(t, "at the end of its session", again(c).closed(), true)
		want(t, "sessions", len(s.Sessions()), 1)
		writer := memorySession(t, s, 10*time.Second)
		writer.answer(sendCreate(writer, "/x"))
		want(t, "stale", stale.call(embedded.OpExists, "/x", false).err, -101)
	})
}

// A fault can cut one client off, however often it connects, while the server answers others.
func TestSessionCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		c, other := memorySession(t, s, 10*time.Second), memorySession(t, s, 40*time.Second)
		c.answer(sendCreate(c, "/mine"))
		mine := func() bool { return other.call(embedded.OpExists, "/mine", false).err == 0 }
		cut := s.Inject(embedded.Fault{Op: embedded.OpAll, Session: c.id, Times: -1, Action: embedded.BlackHole})
		unanswered := func(c *rawClient, what string) {
			t.Helper()
			c.nc.SetDeadline(time.Now().Add(time.Second))
			_, err := c.read()
			want(t, what, err, "read pipe: i/o timeout")
		}
		c.request(embedded.OpPing)
		unanswered(c, "a ping")
		for second := range 20 {
			if second < 9 {
				want(t, "its node exists", mine(), true)
			}
			next := dialMemory(t, s, "")
			next.send(pack(0, int64(0), 10000, c.id, c.password, false))
			unanswered(next, "a handshake")
			next.nc.Close()
		}
		want(t, "its node exists after 20 s", mine(), false)
		want(t, "a new session", memorySession(t, s, 10*time.Second).id != c.id, true)
		cut.Remove()
		want(t, "the old one after that", dialMemory(t, s, "").connect(10*time.Second, c.id, c.password, 0), false)
	})
}

func TestStaleReads(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		lagging, live := memorySession(t, s, 40*time.Second), memorySession(t, s, 40*time.Second)
		fault := s.Inject(embedded.Fault{Op: embedded.OpExists, Session: lagging.id, Nth: 2, Action: embedded.StaleReads})
		read := func() int32 { return lagging.call(embedded.OpExists, "/x", false).err }
		want(t, "first read", read(), -101)
		live.answer(sendCreate(live, "/x"))
		want(t, "up to date until the second", read(), 0)
		want(t, "firings", len(fault.Firings()), 1)
		live.call(embedded.OpDelete, "/x", -1)
		want(t, "stale", read(), 0)
		s.Thaw(lagging.id)
		want(t, "thawed", read(), -101)
	})
}

// The log has each fault, with the request that it concerned.
func TestFaultsAreLogged(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	s, err := embedded.Start(embedded.ServerConfig{MemoryOnly: true, Logger: logger})
	want(t, "start", err, nil)
	c := memorySession(t, s, 10*time.Second)
	s.Inject(embedded.Fault{Op: embedded.OpCreate, Action: embedded.DropReply})
	sendCreate(c, "/x")
	want(t, "cut", c.closed(), true)
	s.Freeze(0)
	s.Thaw(0)
	s.Pause()
	s.Resume()
	s.Advance(time.Second)
	s.DropConnections()
	s.Expire(c.id)
	s.Close()
	for _, line := range []string{
		fmt.Sprintf(`msg="fault fired" action="drop reply" op=create path=/x session=%#x`, c.id),
		"reads frozen", "reads thawed", "msg=paused", "msg=resumed", `msg="clock advanced" by=1s`, "connections dropped",
		fmt.Sprintf(`msg="session expired" session=%#x`, c.id),
	} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("no %q in\n%s", line, &log)
		}
	}
}

// go-zookeeper's client works in virtual time, too.
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
