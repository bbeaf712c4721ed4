package recipes

import (
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// A local queue releases an unused node at once while others wait, not after Linger.
func TestLocalReleasedAtOnce(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		other := v.Mutex()
		mu := locks.Mutex("/lock", locktest.LongLinger)
		locktest.Unlock(v, locktest.Lock(v, mu))
		<-time.After(time.Minute)
		begun := time.Now()
		locktest.Unlock(v, locktest.Lock(v, other))
		// A node in use is released after its use.
		g := locktest.Lock(v, mu)
		f := other.Acquire(locktest.Within(v))
		<-time.After(10 * time.Second)
		locktest.Pending(v, f)
		locktest.Unlock(v, g)
		locktest.Unlock(v, locktest.Result(v, f))
		if took := time.Since(begun); took > 10*time.Second+10*time.Millisecond {
			v.Errorf("granted after %v", took)
		}
		v.Clean()
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
		{"count", actors.LocalQueueConfig{Grants: 7, Time: time.Minute}, 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				var mus []*actors.Mutex
				for range 2 {
					locks := v.Locks()
					mus = append(mus, locks.Mutex("/lock", actors.LocalQueue(test.local)))
				}
				var turns [][2]int // process, grants
				var last actors.Token
				stop := make(chan struct{})
				var wg sync.WaitGroup
				for process, mu := range mus {
					for range 8 {
						wg.Go(func() {
							for !locktest.IsClosed(stop) {
								g, err := mu.Lock(locktest.Within(v))
								if err != nil {
									v.Error(err)
									return
								}
								if n := len(turns); n == 0 || turns[n-1][0] != process {
									turns = append(turns, [2]int{process, 0})
								}
								turns[len(turns)-1][1]++
								locktest.ExpectIncreasing(v, last, g.Token())
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
				v.Clean()
			})
		})
	}
}

// Processes with and without a local queue acquire all the time. All are granted, one at a time.
func TestLocalManyConnections(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		busy := actors.LocalQueue(actors.LocalQueueConfig{Grants: 5, Linger: 20 * time.Millisecond})
		b.PassAround(24, 30, b.LocalMutex(busy), b.LocalMutex(locktest.ShortLinger), b.Mutex())
	})
}

// Two processes hold in turn, though each has waiters all the time.
func TestLocalTurns(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		option := actors.LocalQueue(actors.LocalQueueConfig{Grants: 50, Linger: 50 * time.Millisecond})
		mus := []*actors.Mutex{b.LocalMutex(option), b.LocalMutex(option)}
		const enough = 5
		var turns [2]int // guarded by the lock
		last := -1
		stop := make(chan struct{})
		end := sync.OnceFunc(func() { close(stop) })
		var wg sync.WaitGroup
		for process, mu := range mus {
			for range 8 {
				wg.Go(func() {
					for !locktest.IsClosed(stop) {
						g, err := mu.Lock(locktest.Within(b))
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
	locktest.Each(t, func(b *locktest.Fixture) { b.PassAround(64, 100, b.LocalMutex(locktest.ShortLinger)) })
}
