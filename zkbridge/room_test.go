package zkbridge

import (
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Waits for room end without a session, in it, and when the bridge has ended.
func TestAwaitRoomEnds(t *testing.T) {
	s := zktest.Embedded(t)
	b := connected(t, Config{Servers: s.Addr()})
	await := func(n int) {
		t.Helper()
		done := make(chan struct{})
		b.AwaitRoom(n, func() { close(done) })
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("the wait does not end")
		}
	}
	for _, n := range []int{1, maxBacklog, 10 * maxBacklog, 1} {
		await(n)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	await(1)
}

// The waits end one after the other, in their order: each when few requests are unanswered, those
// included for which there was room before, or when all are answered that were unanswered at its
// beginning. Without requests that are unanswered there is room. When the bridge ends, all of them end.
func TestRoomOrder(t *testing.T) {
	a := &bridgeActor{epoch: &epoch.Epoch{}}
	var ended []int
	wait := func(i, n int) { roomWait{n: n, f: func() { ended = append(ended, i) }}.handle(a) }
	answer := func(n int) { // of the requests that are unanswered
		a.newCreates.n -= n
		a.rooms.answers += uint64(n)
	}
	check := func(n int) {
		t.Helper()
		a.rooms.end(a.outstanding())
		if len(ended) != n {
			t.Fatalf("%v have ended, not %d", ended, n)
		}
	}
	a.newCreates.n = maxBacklog
	wait(0, maxBacklog)
	wait(1, 1)
	wait(2, 1)
	check(0)
	answer(1)
	check(1) // there is room for one
	check(1) // its requests may be on their way
	a.newCreates.n += maxBacklog
	answer(maxBacklog)
	check(2)
	answer(1)
	check(3)

	// Others always have too many.
	a.newCreates.n = 10 * maxBacklog
	wait(3, 1)
	for range 9 {
		answer(maxBacklog)
		a.newCreates.n += maxBacklog
		check(3)
	}
	answer(maxBacklog)
	a.newCreates.n += maxBacklog
	check(4)

	wait(4, maxBacklog)
	wait(5, maxBacklog)
	a.newCreates.n = 0
	check(6)

	// The bridge ends beside two that wait.
	a.newCreates.n = 10 * maxBacklog
	a.rooms.granted = a.rooms.answers + 10*maxBacklog
	wait(6, 1)
	wait(7, 1)
	check(6)
	a.rooms.end(0)
	check(8)
	for i, got := range ended {
		if got != i {
			t.Errorf("they end as %v", ended)
		}
	}
}
