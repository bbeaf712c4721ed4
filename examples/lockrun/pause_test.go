//go:build unix

package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// While lockrun is paused another process gets its lock. The command goes on meanwhile, which
// lockrun cannot prevent. When lockrun is resumed, it kills the command's group at once.
func TestPaused(t *testing.T) {
	zktest.OneRunIn(t, 8) // it waits for about ten seconds
	t.Parallel()
	const session = 10 * time.Second
	const grace = session / 10
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		pipe, groupEnded := namedPipe(t)
		path := s.Path(t)
		p := launch(t, "", append(lockFlags(s, path, "-session", session.String()), "--", "sh", "-c", ignoresTERM, pipe)...)
		p.line(t)
		next := launch(t, "", append(lockFlags(s, path), "--", "echo", "mine")...)
		zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 2 }, "the next one waits")
		p.signal(t, syscall.SIGSTOP)
		if got := next.line(t); got != "mine" {
			t.Errorf("the next one printed %q", got)
		}
		select {
		case <-groupEnded:
			t.Error("the group has ended while lockrun was paused")
		default:
		}
		p.signal(t, syscall.SIGCONT)
		resumed := time.Now()
		select {
		case <-groupEnded:
		case <-time.After(timeLimit):
			t.Fatal("the command's group still runs")
		}
		if took := time.Since(resumed); took > grace {
			t.Errorf("the group was dead only %v after lockrun went on", took)
		} else {
			t.Logf("the group was dead %v after lockrun went on", took)
		}
		if code := p.code(t); code != exitLost {
			t.Errorf("code %d, want %d; %s", code, exitLost, &p.stderr)
		}
	})
}

// The lock is not lost if lockrun is paused for less than its session timeout.
func TestShortPause(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		path := s.Path(t)
		p := launch(t, "", append(lockFlags(s, path, "-session", "60s"), "--", "sh", "-c", `trap "exit 3" TERM; echo up; while :; do sleep 0.05; done`)...)
		p.line(t)
		next := launch(t, "", append(lockFlags(s, path), "--", "echo", "mine")...)
		zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 2 }, "the next one waits")
		p.signal(t, syscall.SIGSTOP)
		if all := objects(t, output(t, 0, "who", "-json", "-zk", s.Addr(), path)); len(all) != 2 || all[0]["owner"] != "sh" || all[0]["holds"] != true {
			t.Errorf("during the pause: %v", all)
		}
		p.signal(t, syscall.SIGCONT)
		p.signal(t, syscall.SIGTERM)
		if code := p.code(t); code != 3 {
			t.Errorf("code %d, want the command's own; %s", code, &p.stderr)
		}
		if got := next.line(t); got != "mine" {
			t.Errorf("the next one printed %q", got)
		}
	})
}

// The group is dead before the next process gets the lock if the network drops all packets.
func TestBlackHole(t *testing.T) {
	zktest.OneRunIn(t, 8) // it waits for about ten seconds
	t.Parallel()
	const session = 10 * time.Second
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		proxy, path := zktest.Proxy(t, s.Addr()), s.Path(t)
		pipe, groupEnded := namedPipe(t)
		p := launch(t, "", "-zk", proxy.Addr(), "-lock", path, "-session", session.String(), "--", "sh", "-c", ignoresTERM, pipe)
		p.line(t)
		next := launch(t, "", append(lockFlags(s, path), "--", "echo", "mine")...)
		zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 2 }, "the next one waits")
		proxy.BlackHole(true)
		start := time.Now()
		select {
		case <-groupEnded:
		case line := <-next.lines:
			t.Errorf("the next one printed %q while the command runs", line)
			return
		case <-time.After(timeLimit):
			t.Fatal("the command's group still runs")
		}
		if took := time.Since(start); took >= session {
			t.Errorf("the group was dead only %v after the last answer: the session timeout is %v", took, session)
		}
		if got := next.line(t); got != "mine" {
			t.Errorf("the next one printed %q", got)
		}
		if code := p.code(t); code != exitLost {
			t.Errorf("code %d, want %d; %s", code, exitLost, &p.stderr)
		}
	})
}
