package embedded_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestExpiryByTheClock(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		c, watcher := memorySession(t, s, 5*time.Second), memorySession(t, s, 40*time.Second)
		c.answer(sendCreate(c, "/x"))
		start := time.Now()
		for range 10 { // a session that pings lives on
			time.Sleep(3 * time.Second)
			c.call(embedded.OpPing)
		}
		last := time.Now()
		watcher.call(embedded.OpExists, "/x", true)
		watcher.nc.SetDeadline(time.Now().Add(time.Hour))
		d := unpack{t: t, b: watcher.frame()}
		want(t, "event", d.int(), -1)
		idle := time.Since(last)
		if idle < 5*time.Second || idle > 7*time.Second {
			t.Errorf("expired after %v without a ping", idle)
		}
		want(t, "cut", c.closed(), true)
		want(t, "virtual time has passed", time.Since(start) > 30*time.Second, true)
	})
}

// A session goes on after the end of its connection.
func TestReconnectInTime(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		c := memorySession(t, s, 4*time.Second)
		c.answer(sendCreate(c, "/x"))
		for range 5 {
			c.nc.Close()
			time.Sleep(3 * time.Second)
			next := dialMemory(t, s, "")
			want(t, "connected", next.connect(4*time.Second, c.id, c.password, c.zxid), true)
			c = next
		}
		want(t, "node", c.call(embedded.OpExists, "/x", false).err, 0)
	})
}

func TestContainersAndTTL(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		c := memorySession(t, s, 40*time.Second)
		exists := func(path string) bool { return c.call(embedded.OpExists, path, false).err == 0 }
		c.call(embedded.OpCreateContainer, "/used", []byte(nil), open, 4)
		c.call(embedded.OpCreateContainer, "/unused", []byte(nil), open, 4)
		c.call(embedded.OpCreateTTL, "/ttl", []byte(nil), open, 5, int64(5000))
		c.call(embedded.OpMulti, packed(pack(embedded.OpCreate, false, -1, "/multi", []byte(nil), open, 4)),
			packed(pack(embedded.OpCreate, false, -1, "/multi/a", []byte(nil), open, 1)), packed(pack(-1, true, -1)))
		c.answer(sendCreate(c, "/used/a"))
		time.Sleep(4 * time.Second)
		want(t, "with child", exists("/used") && exists("/multi"), true)
		c.call(embedded.OpDelete, "/used/a", -1)
		c.call(embedded.OpDelete, "/multi/a", -1)
		time.Sleep(3 * time.Second)
		want(t, "emptied", exists("/used") || exists("/multi"), false)
		want(t, "never used", exists("/unused"), true)
		want(t, "outlived", exists("/ttl"), false)
	})
}

// Both servers delete emptied containers and nodes whose TTL is over, in real time.
func TestEmptiedAndOutlivedNodesGo(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		c, path := openSession(t, s.Addr(), 10*time.Second), s.Path(t)
		exists := func(name string) bool { return c.call(embedded.OpExists, path+name, false).err == 0 }
		c.call(embedded.OpCreate, path, []byte(nil), open, 0)
		for _, name := range []string{"/used", "/unused"} {
			want(t, name, c.call(embedded.OpCreateContainer, path+name, []byte(nil), open, 4).err, 0)
		}
		want(t, "/ttl", c.call(embedded.OpCreateTTL, path+"/ttl", []byte(nil), open, 5, int64(300)).err, 0)
		// The child comes in the same transaction, so that the server cannot delete the parent
		// before.
		want(t, "/parent", c.call(embedded.OpMulti,
			packed(pack(embedded.OpCreateTTL, false, -1, path+"/parent", []byte(nil), open, 5, int64(300))),
			packed(pack(embedded.OpCreate, false, -1, path+"/parent/a", []byte(nil), open, 0)), packed(pack(-1, true, -1))).err, 0)
		c.call(embedded.OpCreate, path+"/used/a", []byte(nil), open, 0)
		want(t, "delete", c.call(embedded.OpDelete, path+"/used/a", -1).err, 0)
		zktest.Eventually(t, timeLimit, func() bool { return !exists("/used") && !exists("/ttl") }, "the server deletes them")
		want(t, "never used", exists("/unused"), true)
		want(t, "outlived, but with a child", exists("/parent"), true)
		want(t, "delete", c.call(embedded.OpDelete, path+"/parent/a", -1).err, 0)
		zktest.Eventually(t, timeLimit, func() bool { return !exists("/parent") }, "the server deletes it")
	})
}

func TestWords(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		c := s.Client(t)
		path := s.Path(t)
		if _, err := c.Create(path, nil, zk.FlagEphemeral, open); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := c.GetW(path); err != nil {
			t.Fatal(err)
		}
		for word, has := range map[string]string{
			"ruok": "imok",
			"isro": "rw",
			"srvr": "Mode: standalone\nNode count: ",
			"stat": "\nClients:\n",
			"mntr": "zk_server_state\tstandalone\n",
			"conf": "tickTime=",
			"cons": fmt.Sprintf("sid=%#x,lop=", c.SessionID()),
			"dump": fmt.Sprintf("%#x:\n\t%s\n", c.SessionID(), path),
			"envi": "Environment:\nzookeeper.version=",
			"wchs": "\nTotal watches:",
			"wchc": fmt.Sprintf("%#x\n\t%s\n", c.SessionID(), path),
			"wchp": fmt.Sprintf("%s\n\t%#x\n", path, c.SessionID()),
		} {
			nc, err := net.Dial("tcp", s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			nc.SetDeadline(time.Now().Add(timeLimit))
			io.WriteString(nc, word)
			answer, err := io.ReadAll(nc)
			nc.Close()
			if err != nil || !strings.Contains(string(answer), has) {
				t.Errorf("%s: %v\n%s", word, err, answer)
			}
		}
	})
}

// go-zookeeper understands the answers to the four-letter words.
func TestWordsThroughClient(t *testing.T) {
	s := embedded.Run(t)
	c := client(t, s)
	stats, ok := zk.FLWSrvr([]string{s.Addr()}, timeLimit)
	want(t, "srvr", fmt.Sprint(ok, stats[0].Mode, stats[0].NodeCount), "true standalone 5")
	want(t, "ruok", zk.FLWRuok([]string{s.Addr()}, timeLimit), []bool{true})
	found := false
	cons, _ := zk.FLWCons([]string{s.Addr()}, timeLimit)
	for _, client := range cons[0].Clients {
		found = found || client.SessionID == c.SessionID()
	}
	want(t, "cons", found, true)
}

// A client that does not read its replies does not delay the others.
func TestSlowReader(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		slow, quick := memorySession(t, s, 40*time.Second), memorySession(t, s, 40*time.Second)
		for range 1000 {
			slow.request(embedded.OpGetChildren2, "/", false)
		}
		for range 100 {
			quick.call(embedded.OpExists, "/", true)
		}
		for i := range int32(1000) {
			want(t, "slow", slow.answer(i+1).err, 0)
		}
	})
}

// The server reads frames that arrive in pieces.
func TestPieces(t *testing.T) {
	inBubble(t, func(t *testing.T, s *embedded.Server) {
		c := memorySession(t, s, 40*time.Second)
		data := []byte(strings.Repeat("x", 100_000))
		frame := pack(1, embedded.OpCreate, "/big", data, open, 0)
		stream := append(pack(len(frame)), frame...)
		stream = append(stream, pack(8, -2, embedded.OpPing)...)
		for len(stream) > 0 {
			n := min(len(stream), 1+len(stream)/7)
			c.nc.Write(stream[:n])
			stream = stream[n:]
			synctest.Wait()
		}
		want(t, "create", c.answer(1).err, 0)
		want(t, "ping", c.answer(-2).err, 0)
		want(t, "size", len(c.call(embedded.OpGetData, "/big", false).body), 4+100_000+68)
	})
}

func TestClose(t *testing.T) {
	s, err := embedded.Start(embedded.ServerConfig{})
	want(t, "start", err, nil)
	c := openSession(t, s.Addr(), 10*time.Second)
	want(t, "close", s.Close(), nil)
	want(t, "close again", s.Close(), nil)
	want(t, "cut", c.closed(), true)
	want(t, "no answers", fmt.Sprint(s.Sessions(), s.Watches(), s.Dump(), s.Expire(1)), "[] 0false")
	if _, err := s.Dial(t.Context(), "", ""); err == nil {
		t.Error("dialed a closed server")
	}
	if _, err := embedded.Start(embedded.ServerConfig{Addr: "256.0.0.1:0"}); err == nil {
		t.Error("started at an invalid address")
	}
}
