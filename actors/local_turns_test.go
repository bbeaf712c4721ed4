package actors_test

import (
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// A local queue releases an unused node at once while others wait, not after Linger.
func TestLocalReleasedAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		locks := v.locks()
		other := v.mutex()
		mu := locks.Mutex("/lock", longLinger)
		unlock(v, lock(v, mu))
		<-time.After(time.Minute)
		begun := time.Now()
		unlock(v, lock(v, other))
		// A node in use is released after its use.
		g := lock(v, mu)
		f := other.Acquire(within(v))
		<-time.After(10 * time.Second)
		pending(v, f)
		unlock(v, g)
		unlock(v, result(v, f))
		if took := time.Since(begun); took > 10*time.Second+10*time.Millisecond {
			v.Errorf("granted after %v", took)
		}
		v.clean()
	})
}

// The owners of two processes request the lock all the time. Each process holds for its budget, of
// time or of grants.
func TestLocalBudget(t *testing.T) {
	t.Parallel()
	const hold = 10 * time.Millisecond
	for _, test := range []struct {
		name  string
		local actors.LocalQueueConfig
		most  int // grants in a row, with the first and the last
	}{
		{"time", actors.LocalQueueConfig{Time: 200 * time.Millisecond}, 21},
		{"count", actors.LocalQueueConfig{Grants: 7, Time: time.Hour}, 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(v *virtual) {
				var mus []*actors.Mutex
				for range 2 {
					locks := v.locks()
					mus = append(mus, locks.Mutex("/lock", actors.LocalQueue(test.local)))
				}
				var turns [][2]int // process, grants
				var last actors.Token
				stop := make(chan struct{})
				var wg sync.WaitGroup
				for process, mu := range mus {
					for range 8 {
						wg.Go(func() {
							for !isClosed(stop) {
								g, err := mu.Lock(within(v))
								if err != nil {
									v.Error(err)
									return
								}
								if n := len(turns); n == 0 || turns[n-1][0] != process {
									turns = append(turns, [2]int{process, 0})
								}
								turns[len(turns)-1][1]++
								expectIncreasing(v, last, g.Token())
								last = g.Token()
								<-time.After(hold)
								g.Release()
							}
						})
					}
				}
				<-time.After(20 * time.Second)
				close(stop)
				wg.Wait()
				if len(turns) < 20 {
					v.Errorf("%d turns in 20 s: %v", len(turns), turns)
				}
				for i, turn := range turns[1 : len(turns)-2] {
					if turn[1] > test.most || turn[1] < test.most-2 {
						v.Errorf("turn %d is of %d grants: %v", i+1, turn[1], turns)
						break
					}
				}
				v.clean()
			})
		})
	}
}

// Processes with and without a local queue acquire all the time. All are granted, one at a time.
func TestLocalManyConnections(t *testing.T) {
	each(t, func(b *testLock) {
		busy := actors.LocalQueue(actors.LocalQueueConfig{Grants: 5, Linger: 20 * time.Millisecond})
		b.passAround(24, 30, b.local(busy), b.local(shortLinger), b.mutex())
	})
}

// Two processes hold in turn, though each has waiters all the time.
func TestLocalTurns(t *testing.T) {
	each(t, func(b *testLock) {
		option := actors.LocalQueue(actors.LocalQueueConfig{Grants: 50, Linger: 50 * time.Millisecond})
		mus := []*actors.Mutex{b.local(option), b.local(option)}
		const enough = 5
		var turns [2]int // guarded by the lock
		last := -1
		stop := make(chan struct{})
		end := sync.OnceFunc(func() { close(stop) })
		var wg sync.WaitGroup
		for process, mu := range mus {
			for range 8 {
				wg.Go(func() {
					for !isClosed(stop) {
						g, err := mu.Lock(within(b))
						if err != nil {
							b.Error(err)
							end()
							return
						}
						if last != process {
							last = process
							turns[process]++
						}
						if turns[0] >= enough && turns[1] >= enough {
							end()
						}
						g.Release()
					}
				})
			}
		}
		wg.Wait()
	})
}

func TestLocalManyGoroutines(t *testing.T) {
	each(t, func(b *testLock) { b.passAround(64, 100, b.local(shortLinger)) })
}
