package actors_test

import (
	"slices"
	"sync"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// turn is one grant of a goroutine: the lock, and what the goroutine does while it holds.
type turn struct {
	lock    handle
	options []actors.Option
	inside  func(g *actors.Grant)
}

// turns has each of n goroutines lock and release, rounds times. next returns the next turn of the
// ith goroutine. A goroutine mostly requests the lock again before its release is answered.
func (b *testLock) turns(n, rounds int, next func(i int) turn) {
	b.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var releases []*actors.Future[struct{}]
			for round := range rounds {
				turn := next(i)
				g, err := turn.lock.Lock(within(b), turn.options...)
				if err != nil {
					b.Errorf("lock %s: %v", turn.lock.Path(), err)
					return
				}
				if turn.inside != nil {
					turn.inside(g)
				}
				releases = append(releases, g.Release())
				if round%3 == 0 {
					releases[round].Wait(within(b))
				}
			}
			for _, f := range releases {
				if _, err := f.Wait(within(b)); err != nil {
					b.Errorf("release: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// passAround has goroutines lock handles of one path in turn. It checks that tokens increase, and
// counts the grants without synchronisation, which the race detector checks.
func (b *testLock) passAround(goroutines, rounds int, all ...handle) {
	b.Helper()
	count, last := 0, actors.Token{}
	b.turns(goroutines, rounds, func(i int) turn {
		return turn{lock: all[i%len(all)], inside: func(g *actors.Grant) {
			count++
			expectIncreasing(b, last, g.Token())
			last = g.Token()
		}}
	})
	if count != goroutines*rounds {
		b.Errorf("%d grants counted %d", goroutines*rounds, count)
	}
}

// inTurn waits until the requests are granted, in any order. It calls inside with each grant, and
// releases it.
func (b *testLock) inTurn(inside func(*actors.Grant), fs ...*actors.Future[*actors.Grant]) {
	b.Helper()
	for len(fs) > 0 {
		next := -1
		zktest.Eventually(b, timeLimit, func() bool {
			next = slices.IndexFunc(fs, func(f *actors.Future[*actors.Grant]) bool { return isClosed(f.Done()) })
			return next >= 0
		}, "one of %d requests is granted", len(fs))
		g := result(b, fs[next])
		inside(g)
		unlock(b, g)
		fs = slices.Delete(slices.Clone(fs), next, next+1)
	}
}
