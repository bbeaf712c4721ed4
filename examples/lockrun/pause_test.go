//go:build unix

package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// TestPaused stops lockrun itself until another has its lock. Its command runs on, which
// cannot be helped; but when lockrun goes on, there is no grace left to give it.
func TestPaused(t *testing.T) {
	const session = 10 * time.Second
	const grace = session / 10
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		pipe, dead := pipeOf(t)
		path := s.Path(t)
		p := launch(t, "", append(on(s, path, "-session", session.String()), "--", "sh", "-c", stubborn, pipe)...)
		p.line(t)
		next := launch(t, "", append(on(s, path), "--", "echo", "mine")...)
		zktest.Eventually(t, patience, func() bool { return len(s.Nodes(t, path)) == 2 }, "the next one waits")
		p.signal(t, syscall.SIGSTOP)
		if got := next.line(t); got != "mine" {
			t.Errorf("the next one said %q", got)
		}
		select {
		case <-dead:
			t.Error("the group has ended, with nobody to stop it")
		default:
		}
		p.signal(t, syscall.SIGCONT)
		resumed := time.Now()
		select {
		case <-dead:
		case <-time.After(patience):
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

// TestShortPause stops lockrun for less than its session lasts: nothing is lost.
func TestShortPause(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		path := s.Path(t)
		p := launch(t, "", append(on(s, path, "-session", "30s"), "--", "sh", "-c", `trap "exit 3" TERM; echo up; while :; do sleep 0.05; done`)...)
		p.line(t)
		p.signal(t, syscall.SIGSTOP)
		other := launch(t, "", append(on(s, path, "-wait", "1s"), "true")...)
		if code := other.code(t); code != exitNotAcquired {
			t.Errorf("another has got the lock: code %d", code)
		}
		p.signal(t, syscall.SIGCONT)
		p.signal(t, syscall.SIGTERM)
		if code := p.code(t); code != 3 {
			t.Errorf("code %d, want the command's own; %s", code, &p.stderr)
		}
	})
}

// TestBlackHole has the network swallow everything, both ways.
func TestBlackHole(t *testing.T) {
	const session = 10 * time.Second
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		proxy, path := zktest.Proxy(t, s.Addr()), s.Path(t)
		pipe, dead := pipeOf(t)
		p := launch(t, "", "-zk", proxy.Addr(), "-lock", path, "-session", session.String(), "--", "sh", "-c", stubborn, pipe)
		p.line(t)
		next := launch(t, "", append(on(s, path), "--", "echo", "mine")...)
		zktest.Eventually(t, patience, func() bool { return len(s.Nodes(t, path)) == 2 }, "the next one waits")
		proxy.BlackHole(true)
		start := time.Now()
		select {
		case <-dead:
		case line := <-next.lines:
			t.Errorf("the next one said %q while the command runs", line)
			return
		case <-time.After(patience):
			t.Fatal("the command's group still runs")
		}
		if took := time.Since(start); took >= session {
			t.Errorf("the group was dead only %v after the last answer: the session timeout is %v", took, session)
		}
		if got := next.line(t); got != "mine" {
			t.Errorf("the next one said %q", got)
		}
		if code := p.code(t); code != exitLost {
			t.Errorf("code %d, want %d; %s", code, exitLost, &p.stderr)
		}
	})
}
