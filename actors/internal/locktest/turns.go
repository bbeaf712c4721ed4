package locktest

import (
	"slices"
	"sync"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Turn is one grant of a goroutine: the lock, and what the goroutine does while it holds.
type Turn struct {
	Lock    Handle
	Options []actors.Option
	Inside  func(g *actors.Grant)
}

// Turns has each of n goroutines lock and release, rounds times. next returns the next turn of the
// ith goroutine. A goroutine mostly requests the lock again before its release is answered.
func (b *Fixture) Turns(n, rounds int, next func(i int) Turn) {
	b.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var releases []*actors.Future[struct{}]
			for round := range rounds {
				turn := next(i)
				g, err := turn.Lock.Lock(Within(b), turn.Options...)
				if err != nil {
					b.Errorf("lock %s: %v", turn.Lock.Path(), err)
					return
				}
				if turn.Inside != nil {
					turn.Inside(g)
				}
				releases = append(releases, g.Release())
				if round%3 == 0 {
					releases[round].Wait(Within(b))
				}
			}
			for _, f := range releases {
				if _, err := f.Wait(Within(b)); err != nil {
					b.Errorf("release: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// PassAround has goroutines lock handles of one path in turn. It checks that tokens increase, and
// counts the grants without synchronisation, which the race detector checks.
func (b *Fixture) PassAround(goroutines, rounds int, all ...Handle) {
	b.Helper()
	count, last := 0, actors.Token{}
	b.Turns(goroutines, rounds, func(i int) Turn {
		return Turn{Lock: all[i%len(all)], Inside: func(g *actors.Grant) {
			count++
			ExpectIncreasing(b, last, g.Token())
			last = g.Token()
		}}
	})
	if count != goroutines*rounds {
		b.Errorf("%d grants counted %d", goroutines*rounds, count)
	}
}

// InTurn waits until the requests are granted, in any order. It calls inside with each grant, and
// releases it.
func (b *Fixture) InTurn(inside func(*actors.Grant), fs ...*actors.Future[*actors.Grant]) {
	b.Helper()
	for len(fs) > 0 {
		next := -1
		zktest.Eventually(b, zktest.TimeLimit, func() bool {
			next = slices.IndexFunc(fs, func(f *actors.Future[*actors.Grant]) bool { return IsClosed(f.Done()) })
			return next >= 0
		}, "one of %d requests is granted", len(fs))
		g := Result(b, fs[next])
		inside(g)
		Unlock(b, g)
		fs = slices.Delete(slices.Clone(fs), next, next+1)
	}
}
