package actors_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// each runs f on both servers, in parallel with other tests. f releases the locks that it acquires: when it
// has returned, no node is left, and no watch. In an exhaustive run no other test uses the real server
// meanwhile, so each counts its watches, too. A run by habit has one in three of the real halves, which take
// most of the processor time; a run with -run has all.
func each(t *testing.T, f func(b *testLock)) {
	t.Helper()
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		sampleReal(t, s)
		t.Parallel()
		onServer(t, s, f, !(s.Real() && zktest.Exhaustive()))
	})
}

// realServer guards the watches of the real server, which all tests share: a test that counts them locks it,
// and other tests that use the server lock it to read.
var realServer sync.RWMutex

// sharesServer keeps tests from counting the watches of the real server until this test ends.
func sharesServer(t *testing.T, s *zktest.Server) {
	if s.Real() {
		realServer.RLock()
		t.Cleanup(realServer.RUnlock)
	}
}

// eachSerial is each for a test that counts watches or messages: no other test of this package uses the
// real server meanwhile, and no other test runs if this one is not parallel.
func eachSerial(t *testing.T, f func(b *testLock)) {
	t.Helper()
	onEach(t, f, false)
}

// eachParallel is each for a test that mostly waits: it always runs in parallel with other tests, and does
// not count the watches of the real server, which these tests share.
func eachParallel(t *testing.T, f func(b *testLock)) {
	t.Helper()
	t.Parallel()
	onEach(t, f, true)
}

// onOneServer is eachParallel on one of the servers, which it draws at random, for a test with a client of
// another library, whose process takes seconds to start. A run by habit has one in eight of these tests, and
// an exhaustive run has all of them on both servers.
func onOneServer(t *testing.T, f func(b *testLock)) {
	t.Helper()
	if zktest.Exhaustive() {
		eachSerial(t, f)
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

// lockOn returns a testLock on a server of the test's own. The test calls clean.
func lockOn(t *testing.T, s *zktest.Server) *testLock {
	return &testLock{T: t, Server: s, path: s.Path(t)}
}

// ensemble starts three servers, whose members notice soon that another is gone. By habit it skips the test in
// seven runs of eight.
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
