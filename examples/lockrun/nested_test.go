//go:build unix

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A lockrun refuses to wait for a lock that a lockrun around it holds, whatever the names of the
// server and the path. It waits for every other lock.
func TestLockrunInLockrun(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		for _, c := range []struct {
			outer, inner string // flags
			code         int    // of the inner one
		}{
			{"", "-lock LOCK", exitUsage},
			{"", "-lock LOCK -wait 1h", exitNotAcquired},
			{"", "-lock LOCK-other", 0},
			{"", "-zk SERVER/app -lock LOCK", 0},            // another lock, below a chroot
			{"-zk SERVER/app", "-lock /appLOCK", exitUsage}, // the same lock by another path
			{"-mode write", "-lock LOCK -mode read", exitUsage},
			{"-mode read", "-lock LOCK -mode write", exitUsage},
			{"-mode read", "-lock LOCK -mode read", 0},
			{"-mode semaphore", "-lock LOCK -mode semaphore", exitUsage},
			{"-mode semaphore -permits 2", "-lock LOCK -mode semaphore -permits 2", 0},
			{"", "-lock LOCK-between -- LOCKRUN -zk SERVER -lock LOCK", exitUsage}, // with another lock between
		} {
			path := s.Path(t)
			text := strings.Join([]string{"-zk SERVER -lock LOCK", c.outer, "-- LOCKRUN -zk SERVER", c.inner, "-- true"}, " ")
			text = strings.NewReplacer("SERVER", s.Addr(), "LOCKRUN", "env "+asLockrun+"=1 "+os.Args[0], "LOCK", path).Replace(text)
			p := endsWith(t, c.code, strings.Fields(text)...)
			if code := p.code(t); code != 0 != strings.Contains(p.stderr.String(), "is held by a lockrun around this one") {
				t.Errorf("%s in %s: code %d, want %d; %s", c.inner, c.outer, code, c.code, &p.stderr)
			}
		}
	})
}
