package actors_test

import (
	"sync"

	"github.com/actorlock/actorlock/actors"
)

// turn is what one goroutine locks once, and what it does while it holds.
type turn struct {
	lock    handle
	options []actors.Option
	inside  func(g *actors.Grant)
}

// turns has n goroutines take turns, rounds times each. next returns a turn of the ith goroutine. A goroutine mostly
// asks for the lock again before its release is answered.
func (b *testLock) turns(n, rounds int, next func(i int) turn) {
	b.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var releases []*actors.Future[struct{}]
			for round := range rounds {
				now := next(i)
				g, err := now.lock.Lock(within(b), now.options...)
				if err != nil {
					b.Errorf("lock %s: %v", now.lock.Path(), err)
					return
				}
				if now.inside != nil {
					now.inside(g)
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

// ring has goroutines pass locks of one path around. It checks that tokens increase, and counts without
// synchronisation.
func (b *testLock) ring(goroutines, rounds int, all ...handle) {
	b.Helper()
	count, last := 0, actors.Token{}
	b.turns(goroutines, rounds, func(i int) turn {
		return turn{lock: all[i%len(all)], inside: func(g *actors.Grant) {
			count++
			if g.Token().Compare(last) <= 0 {
				b.Errorf("token %v was granted after %v", g.Token(), last)
			}
			last = g.Token()
		}}
	})
	if count != goroutines*rounds {
		b.Errorf("%d grants counted %d", goroutines*rounds, count)
	}
}
