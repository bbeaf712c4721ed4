package actors_test

import (
	"math/rand/v2"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// each runs f on both servers, in parallel with other tests. f releases the locks that it acquires:
// when it has returned, no node is left, and no watch. A run by habit has one in three of the real
// halves, which take most of the processor time; a run with -run has all.
func each(t *testing.T, f func(b *testLock)) {
	t.Helper()
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		if s.Real() {
			zktest.OneRunIn(t, 3)
		}
		t.Parallel()
		onServer(t, s, f)
	})
}

// onOneServer is each on one of the servers, which it draws at random, for a test with a client of
// another library, whose process takes seconds to start. A run by habit has one in eight of these
// tests, and an exhaustive run has all of them on both servers.
func onOneServer(t *testing.T, f func(b *testLock)) {
	t.Helper()
	if zktest.Exhaustive() {
		each(t, f)
		return
	}
	zktest.OneRunIn(t, 8)
	t.Parallel()
	name, start := "embedded", func(t *testing.T) *zktest.Server { return zktest.Embedded(t) }
	if rand.N(2) == 0 {
		name, start = "zookeeper", func(t *testing.T) *zktest.Server { return zktest.Real(t) }
	}
	t.Run(name, func(t *testing.T) { onServer(t, start(t), f) })
}

func onServer(t *testing.T, s *zktest.Server, f func(b *testLock)) {
	t.Helper()
	b := &testLock{T: t, Server: s, path: s.Path(t)}
	f(b)
	if !t.Failed() {
		b.clean()
	}
}

// onEmbedded is each without the real server.
func onEmbedded(t *testing.T, f func(b *testLock)) {
	t.Helper()
	onServer(t, zktest.Embedded(t), f)
}

// lockOn returns a testLock on a server of the test's own. The test calls clean.
func lockOn(t *testing.T, s *zktest.Server) *testLock {
	return &testLock{T: t, Server: s, path: s.Path(t)}
}

// ensemble starts three servers, whose members notice soon that another is gone. By habit it skips
// the test in seven runs of eight.
func ensemble(t *testing.T, opts ...zktest.ServerOption) *testLock {
	t.Helper()
	if testing.Short() {
		t.Skip("starts three servers")
	}
	zktest.OneRunIn(t, 8)
	t.Parallel()
	s := zktest.Ensemble(t, 3, append(opts, zktest.Setting("syncLimit", "4"))...)
	return lockOn(t, s)
}
