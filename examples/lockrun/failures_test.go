//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestKilledHolderDiesWithItsCommand(t *testing.T) {
	t.Parallel()
	const session = 6 * time.Second // the next lockrun has to wait that long
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		path := s.Path(t)
		first := holder(t, s, path, "-session", session.String())
		next := launch(t, "", append(lockFlags(s, path), "--", "echo", "mine")...)
		zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 2 }, "the next one waits")
		first.signal(t, syscall.SIGKILL)
		first.waitOutputEnd(t)
		if len(next.lines) > 0 {
			t.Error("the lock was granted before the group was dead")
		}
		if got := next.line(t); got != "mine" {
			t.Errorf("the next one printed %q", got)
		}
		if code := next.code(t); code != 0 {
			t.Errorf("code %d; %s", code, &next.stderr)
		}
	})
}

// ignoresTERM is a command that ignores TERM, as its child does. Both have the named pipe open.
const ignoresTERM = `trap "" TERM; exec 9>"$0"; echo up; sleep 1000; sleep 1000`

// namedPipe makes a named pipe. The channel is closed when no process has the pipe open for writing
// any more.
func namedPipe(t *testing.T) (path string, closed <-chan struct{}) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f, err := os.Open(path) // blocks until another process opens it for writing
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		f.Read(make([]byte, 1))
	}()
	t.Cleanup(func() {
		if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			f.Close() // ends the goroutine if no process has opened it
		}
		<-done
	})
	return path, done
}

func TestFrozenServer(t *testing.T) {
	zktest.OneRunIn(t, 8) // it waits for about ten seconds
	t.Parallel()
	const session = 10 * time.Second
	frozen := func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		pipe, groupEnded := namedPipe(t)
		p := launch(t, "", append(lockFlags(s, s.Path(t), "-session", session.String()), "--", "sh", "-c", ignoresTERM, pipe)...)
		p.line(t)
		s.Freeze(t)
		start := time.Now()
		select {
		case <-groupEnded:
		case <-time.After(timeLimit):
			t.Fatal("the command's group still runs")
		}
		took := time.Since(start)
		if took >= session {
			t.Errorf("the group was dead only %v after the server froze: the session timeout is %v", took, session)
		}
		if e := s.Embedded(); e != nil {
			if len(e.Sessions()) == 0 {
				t.Error("the session had expired before the group was dead")
			}
			zktest.Eventually(t, timeLimit, func() bool { return len(e.Sessions()) == 0 }, "the session expires")
			t.Logf("the session expired %v after the group was dead", time.Since(start)-took)
		}
		if code := p.code(t); code != exitLost || !strings.Contains(p.stderr.String(), "lost") {
			t.Errorf("code %d, want %d; %s", code, exitLost, &p.stderr)
		}
		t.Logf("session timeout %v: the group was dead %v after the freeze, lockrun ended %v after", session, took, time.Since(start))
		s.Thaw(t)
	}
	t.Run("embedded", func(t *testing.T) { frozen(t, zktest.Embedded(t)) })
	t.Run("zookeeper", func(t *testing.T) { frozen(t, zktest.Own(t)) })
}

func TestDeletedNode(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		path := s.Path(t)
		p := launch(t, "", append(lockFlags(s, path), "--", "sh", "-c", `trap "echo ended in order; exit 0" TERM; echo up; while :; do sleep 0.05; done`)...)
		p.line(t)
		if err := s.Client(t).Delete(path+"/"+s.Nodes(t, path)[0], -1); err != nil {
			t.Fatal(err)
		}
		if got := p.line(t); got != "ended in order" {
			t.Errorf("the command printed %q", got)
		}
		if code := p.code(t); code != exitLost {
			t.Errorf("code %d, want %d; %s", code, exitLost, &p.stderr)
		}
		p.waitOutputEnd(t)
		t.Log(p.stderr.String())
	})
}

// lockrun ends in time if no server answers.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	noReplies := zktest.Embedded(t)
	noReplies.Embedded().Inject(embedded.Fault{Op: embedded.OpAny, Action: embedded.BlackHole, Times: -1})
	proxy := zktest.Proxy(t, noReplies.Addr())
	proxy.BlackHole(true)
	start := time.Now()
	runs := map[string]*lockrunProcess{}
	for what, addr := range map[string]string{
		"no server listens":                        "127.0.0.1:1",
		"no such name":                             "no-such-host.invalid:2181",
		"a server that accepts and is silent":      proxy.Addr(),
		"a server that answers only the handshake": noReplies.Addr(),
	} {
		runs[what] = launch(t, "", "-zk", addr, "-lock", "/a", "-session", "1s", "-wait", "0", "true")
	}
	for what, p := range runs {
		if code := p.code(t); code != exitUnavailable {
			t.Errorf("%s: code %d, want %d; %s", what, code, exitUnavailable, &p.stderr)
		}
		t.Logf("%s, after %v: %s", what, time.Since(start), strings.TrimSpace(p.stderr.String()))
	}
}

// A lockrun that waits outlives an outage which costs it its session. It says what it waits for,
// again and again.
func TestServerGoesWhileWaiting(t *testing.T) {
	zktest.OneRunIn(t, 8) // it waits for about ten seconds
	t.Parallel()
	s := zktest.Embedded(t)
	path := s.Path(t)
	first := holder(t, s, path, "-session", "2s")
	p := launch(t, "", append(lockFlags(s, path, "-session", "2s"), "true")...)
	zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 2 }, "it waits")
	s.Freeze(t)
	zktest.Eventually(t, timeLimit, func() bool {
		return strings.Count(p.stderr.String(), "waits for "+path+", and for ZooKeeper at "+s.Addr()) >= 2
	}, "two lines about the outage")
	if code := first.code(t); code != exitLost {
		t.Errorf("the holder's code is %d; %s", code, &first.stderr)
	}
	s.Thaw(t)
	if code := p.code(t); code != 0 {
		t.Errorf("code %d, want the command's; %s", code, &p.stderr)
	}
	t.Log(p.stderr.String())
}
