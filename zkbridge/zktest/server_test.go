package zktest

import (
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

var anyone = zk.WorldACL(zk.PermAll)

func create(t *testing.T, c *zk.Conn, path string, flags int32) {
	t.Helper()
	if _, err := c.Create(path, []byte("data"), flags, anyone); err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
}

func TestEach(t *testing.T) {
	var names []string
	Each(t, func(t *testing.T, s *Server) {
		names = append(names, s.Name())
		if !strings.HasSuffix(t.Name(), s.Name()) || s.Real() != (s.Embedded() == nil) {
			t.Errorf("test %s got the server %s", t.Name(), s.Name())
		}
		path, c := s.Path(t), s.Client(t)
		if nodes := s.Nodes(t, path); len(nodes) != 0 {
			t.Errorf("path is in use: %v", nodes)
		}
		create(t, c, path, 0)
		create(t, c, path+"/b", zk.FlagEphemeral)
		create(t, c, path+"/a", 0)
		if nodes := s.Nodes(t, path); !slices.Equal(nodes, []string{"a", "b"}) {
			t.Errorf("nodes %v, want a and b", nodes)
		}
	})
	if !slices.Contains(names, nameEmbedded) {
		t.Errorf("ran on %v only", names)
	}
}

func TestRealIsShared(t *testing.T) {
	if s := Real(t); s != Real(t) || !s.Real() {
		t.Error("two calls of Real returned two servers")
	}
}

// Watches counts node watches and child watches, though ZooKeeper's wchs counts node watches only.
// WatchesBelow counts no others than those below a path.
func TestWatches(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		path, c := s.Path(t), s.Client(t)
		create(t, c, path, 0)
		before := s.Watches(t)
		if _, _, _, err := c.ExistsW(path); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := c.ChildrenW(path); err != nil {
			t.Fatal(err)
		}
		if got := s.Watches(t) - before; got != 2 {
			t.Errorf("%d watches more, want 2", got)
		}
		byPath := 1
		if !s.Real() {
			byPath = 2 // the child watch, too
		}
		if below, others := s.WatchesBelow(t, path), s.WatchesBelow(t, path+"/other"); below != byPath || others != 0 {
			t.Errorf("%d watches below the path and %d below another, want %d and none", below, others, byPath)
		}
		create(t, c, path+"/child", 0)
		Eventually(t, timeLimit, func() bool { return s.Watches(t)-before == 1 }, "the child watch has fired")
	})
}

func TestExpire(t *testing.T) {
	t.Parallel()
	Each(t, func(t *testing.T, s *Server) {
		path, c := s.Path(t), s.Client(t)
		create(t, c, path, zk.FlagEphemeral)
		old := c.SessionID()
		s.Expire(t, old)
		if found, _, err := s.Client(t).Exists(path); err != nil || found {
			t.Errorf("the ephemeral node exists (%v, %v) after its session has expired", found, err)
		}
		Eventually(t, timeLimit, func() bool {
			id := c.SessionID()
			return id != old && id != 0
		}, "the client has a new session")
		if !failed(func(t testing.TB) { s.Expire(t, 12345) }) {
			t.Error("a session that did not exist has expired")
		}
	})
}

// A client that sends nothing loses its session.
func TestSessionTimeout(t *testing.T) {
	t.Parallel()
	Each(t, func(t *testing.T, s *Server) {
		t.Parallel()
		p := Proxy(t, s.Addr())
		timeout := time.Second
		if s.Real() {
			timeout *= 4 // the shortest that it grants
		}
		c, err := dial(p.Addr(), timeout, new(net.Dialer).DialContext)
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		path := s.Path(t)
		create(t, s.Client(t), path, 0)
		Eventually(t, timeLimit, func() bool { // on a busy machine go-zookeeper may close the connection, and connect again
			_, err := c.Create(path+"/mine", nil, zk.FlagEphemeral, anyone)
			return err == nil || errors.Is(err, zk.ErrNodeExists)
		}, "the session has a node")
		p.BlackHole(true)
		Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 0 }, "the session has expired")
	})
}

func TestStopAndStart(t *testing.T) {
	t.Parallel()
	EachOwn(t, func(t *testing.T, s *Server) {
		path, c := s.Path(t), s.Client(t)
		create(t, c, path, 0)
		create(t, c, path+"/kept", zk.FlagEphemeral)
		s.Stop(t)
		s.Stop(t) // does nothing
		if answer, err := fourLetter(s.Addr(), "ruok"); err == nil && answer != "" {
			t.Errorf("answers %q after Stop", answer)
		}
		s.Start(t)
		s.Start(t) // does nothing
		if nodes := s.Nodes(t, path); !slices.Equal(nodes, []string{"kept"}) {
			t.Errorf("nodes %v after the restart, want kept", nodes)
		}
	})
}

func TestFreezeAndThaw(t *testing.T) {
	t.Parallel()
	t.Run(nameEmbedded, func(t *testing.T) { freezeAndThaw(t, Embedded(t)) })
	t.Run(nameReal, func(t *testing.T) { linuxOnly(t); freezeAndThaw(t, Own(t)) })
}

func freezeAndThaw(t *testing.T, s *Server) {
	path, c := s.Path(t), s.Client(t)
	create(t, c, path, 0)
	s.Freeze(t)
	answered := make(chan error, 1)
	go func() {
		_, _, err := c.Exists(path)
		answered <- err
	}()
	if _, err := fourLetterWithin(shortTime, s.Addr(), "ruok"); err == nil {
		t.Error("answers while frozen")
	}
	select {
	case err := <-answered:
		t.Errorf("request answered while frozen: %v", err)
	default:
	}
	s.Thaw(t)
	if err := <-answered; err != nil {
		t.Errorf("request after the thaw: %v", err)
	}
}

func linuxOnly(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("works on Linux only")
	}
}

// The client can be closed while its server is frozen, and the server can be closed afterwards.
func TestFrozenServerCanBeClosed(t *testing.T) {
	t.Parallel()
	linuxOnly(t)
	s := Own(t)
	s.Client(t)
	s.Freeze(t)
}

func TestOptions(t *testing.T) {
	t.Parallel()
	s := Own(t, TickTime(100*time.Millisecond), Setting("maxSessionTimeout", "3000"))
	conf, err := fourLetter(s.Addr(), "conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tickTime=100\n", "minSessionTimeout=200\n", "maxSessionTimeout=3000\n"} {
		if !strings.Contains(conf, want) {
			t.Errorf("no %q in %s", want, conf)
		}
	}
}

func TestMisuse(t *testing.T) {
	for verb, call := range map[string]func(*Server, testing.TB){
		"Stop": (*Server).Stop, "Start": (*Server).Start, "Freeze": (*Server).Freeze, "Thaw": (*Server).Thaw,
	} {
		if !failed(func(t testing.TB) { call(&Server{shared: true}, t) }) {
			t.Errorf("%s works on a shared server", verb)
		}
	}
}

func TestEnsembleSurvivesItsLeader(t *testing.T) {
	t.Parallel()
	OneRunIn(t, 8)
	s := Ensemble(t, 3)
	if n := len(strings.Split(s.Addr(), ",")); n != 3 || len(s.Members()) != 3 {
		t.Fatalf("addresses %s and %d members", s.Addr(), len(s.Members()))
	}
	path, c := s.Path(t), s.Client(t)
	create(t, c, path, 0)
	old := s.Leader(t)
	old.Stop(t)
	next := s.Leader(t)
	if next == old {
		t.Fatal("the stopped leader is the leader")
	}
	Eventually(t, timeLimit, func() bool {
		_, err := c.Set(path, nil, -1)
		return err == nil || errors.Is(err, zk.ErrBadVersion)
	}, "two of three accept writes")
	s.Expire(t, c.SessionID())
	old.Start(t)
	if mode := old.nodes[0].mode(); mode != "follower" {
		t.Errorf("the old leader came back as %q", mode)
	}
	s.Watches(t)
}

// An isolated follower stops serving, and serves again after the end of the isolation.
func TestIsolate(t *testing.T) {
	t.Parallel()
	OneRunIn(t, 8)
	s := Ensemble(t, 3, Links(), Setting("syncLimit", "4"))
	leader := s.Leader(t)
	for _, m := range s.Members() {
		if m == leader {
			continue
		}
		m.Isolate(t, true)
		Eventually(t, timeLimit, func() bool { return m.nodes[0].mode() == "" }, "the follower stops serving")
		if s.Leader(t) == m { // the two others may have elected again: on a busy machine a syncLimit of 0.8 s runs out
			t.Error("an isolated member is the leader")
		}
		m.Isolate(t, false)
		s.Watches(t) // waits until the follower can count its own
		Eventually(t, timeLimit, func() bool { return m.nodes[0].mode() == "follower" }, "the follower serves again")
		break
	}
	if !failed(func(t testing.TB) { (&Server{nodes: []*serverProcess{{}}}).Isolate(t, true) }) {
		t.Error("a server without links can be isolated")
	}
}

func TestEventually(t *testing.T) {
	n := 0
	Eventually(t, time.Minute, func() bool { n++; return n == 5 }, "five")
	if !failed(func(t testing.TB) { Eventually(t, time.Millisecond, func() bool { return false }, "never %d", 1) }) {
		t.Error("does not fail")
	}
}

// failed runs f with another test, and reports whether f has failed it.
func failed(f func(testing.TB)) bool {
	r := &recordingTB{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.failed
}

type recordingTB struct {
	testing.TB
	failed bool
}

func (r *recordingTB) Helper() {}
func (r *recordingTB) Fatalf(string, ...any) {
	r.failed = true
	runtime.Goexit()
}

func TestSetCreateCount(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]func(testing.TB, ...ServerOption) *Server{nameEmbedded: Embedded, nameReal: Own} {
		t.Run(name, func(t *testing.T) {
			s := server(t)
			path, c := s.Path(t), s.Client(t)
			create(t, c, path, 0)
			s.SetCreateCount(t, path, 41)
			node, err := s.Client(t).Create(path+"/n-", nil, zk.FlagSequence, anyone)
			if err != nil {
				t.Fatal(err)
			}
			if want := path + "/n-0000000041"; node != want {
				t.Errorf("node %s, want %s", node, want)
			}
			if !failed(func(t testing.TB) { s.SetCreateCount(t, "/none", 1) }) {
				t.Error("set the count of a missing node")
			}
		})
	}
}
