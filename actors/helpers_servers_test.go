package actors_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// each runs f on both servers, beside other tests. f releases what it acquires: when it returns, no node
// may be left, and no watch. In an exhaustive run no other test uses the real server meanwhile, and its
// watches are counted, too. A run by habit has one in three of the real halves, which take most of the
// processor time; one with -run has all.
func each(t *testing.T, f func(b *testLock)) {
	t.Helper()
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		sampleReal(t, s)
		t.Parallel()
		onServer(t, s, f, !(s.Real() && zktest.Exhaustive()))
	})
}

// realServer is locked by a test that counts the watches of the real server, which all tests share, and
// locked to read by others that use it.
var realServer sync.RWMutex

// sharesServer keeps those out that count the watches of the real server, until the test ends.
func sharesServer(t *testing.T, s *zktest.Server) {
	if s.Real() {
		realServer.RLock()
		t.Cleanup(realServer.RUnlock)
	}
}

// serially is each for a test that counts watches or messages: no other test of this package uses the
// real server meanwhile, and none runs if this one is not parallel.
func serially(t *testing.T, f func(b *testLock)) {
	t.Helper()
	onEach(t, f, false)
}

// besides is each for a test that mostly waits: it runs beside other tests. The watches of
// the real server, which they share, belong to all of them and are not counted.
func besides(t *testing.T, f func(b *testLock)) {
	t.Helper()
	t.Parallel()
	onEach(t, f, true)
}

// onEither is besides on one server, drawn by lot, for tests with a client of another library,
// whose process takes seconds to start. A run by habit has one in eight of them, an exhaustive run
// all on both.
func onEither(t *testing.T, f func(b *testLock)) {
	t.Helper()
	if zktest.Exhaustive() {
		serially(t, f)
		return
	}
	zktest.OneRunIn(t, 8)
	t.Parallel()
	name, start := "embedded", func(t *testing.T) *zktest.Server { return zktest.Embedded(t) }
	if rand.N(2) == 0 {
		name, start = "zookeeper", func(t *testing.T) *zktest.Server { return zktest.Real(t) }
	}
	t.Run(name, func(t *testing.T) { onServer(t, start(t), f, true) })
}

func onEach(t *testing.T, f func(b *testLock), parallel bool) {
	t.Helper()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		if parallel {
			sampleReal(t, s)
			t.Parallel()
		}
		onServer(t, s, f, parallel)
	})
}

// sampleReal skips the real half of a test in two of three runs by habit.
func sampleReal(t *testing.T, s *zktest.Server) {
	if s.Real() {
		zktest.OneRunIn(t, 3)
	}
}

func onServer(t *testing.T, s *zktest.Server, f func(b *testLock), parallel bool) {
	t.Helper()
	switch {
	case parallel:
		sharesServer(t, s)
	case s.Real():
		realServer.Lock()
		t.Cleanup(realServer.Unlock)
	}
	b := &testLock{T: t, Server: s, path: s.Path(t), parallel: parallel}
	f(b)
	if !t.Failed() {
		b.clean()
	}
}

// onEmbedded is each without the real server.
func onEmbedded(t *testing.T, f func(b *testLock)) {
	t.Helper()
	onServer(t, zktest.Embedded(t), f, false)
}

// lockOn returns a lock's path on a server of the test's own. The test calls clean.
func lockOn(t *testing.T, s *zktest.Server) *testLock {
	return &testLock{T: t, Server: s, path: s.Path(t)}
}

// three starts an ensemble, in one run of eight by habit, with short times after which its members miss each other.
func three(t *testing.T, opts ...zktest.ServerOption) *testLock {
	t.Helper()
	if testing.Short() {
		t.Skip("starts three servers")
	}
	zktest.OneRunIn(t, 8)
	t.Parallel()
	s := zktest.Ensemble(t, 3, append(opts, zktest.Setting("syncLimit", "4"))...)
	return lockOn(t, s)
}
