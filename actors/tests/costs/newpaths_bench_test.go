package costs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// BenchmarkNewPaths is n acquires at one moment, each on a path without a directory. What each
// costs must not grow with n.
func BenchmarkNewPaths(b *testing.B) {
	for recipe, acquire := range map[string]func(locks *actors.Locks, path string) *actors.Future[*actors.Grant]{
		"mutex": func(locks *actors.Locks, path string) *actors.Future[*actors.Grant] {
			return locks.Mutex(path).Acquire(context.Background())
		},
		"semaphore": func(locks *actors.Locks, path string) *actors.Future[*actors.Grant] {
			return locks.Semaphore(path, 2).Acquire(context.Background())
		},
		"multilock": func(locks *actors.Locks, path string) *actors.Future[*actors.Grant] {
			return locks.MultiLock(locks.Mutex(path+"-a"), locks.Mutex(path+"-b")).Acquire(context.Background())
		},
	} {
		for _, n := range []int{1000, 2000, 4000, 8000, 20_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", recipe, n), func(b *testing.B) {
				eachServer(b, func(b *testing.B, locks *actors.Locks, path func() string) {
					beside := newBesideNewPaths(b, locks, path())
					for b.Loop() {
						dir, pending := path(), make([]*actors.Future[*actors.Grant], n)
						for i := range pending {
							pending[i] = acquire(locks, fmt.Sprintf("%s/%d", dir, i))
						}
						for _, f := range pending {
							if _, err := f.Result(); err != nil {
								b.Fatal(err)
							}
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/lock")
					b.ReportMetric(float64(beside.stop().Microseconds())/1000, "ms-beside")
				}, zktest.Heap(2048))
			})
		}
	}
}

// beside acquires and releases one lock again and again.
type beside struct {
	end     chan struct{}
	longest chan time.Duration
}

func newBesideNewPaths(b *testing.B, locks *actors.Locks, path string) *beside {
	r := &beside{make(chan struct{}), make(chan time.Duration)}
	mu := locks.Mutex(path + "-beside")
	lockAndUnlock(b, mu)
	go func() {
		var longest time.Duration
		for {
			select {
			case <-r.end:
				r.longest <- longest
				return
			default:
				began := time.Now()
				g, err := mu.Lock(context.Background())
				longest = max(longest, time.Since(began))
				if err == nil {
					err = g.Unlock(context.Background())
				}
				if err != nil {
					b.Error(err)
				}
			}
		}
	}()
	return r
}

// stop returns the longest time that an acquire took.
func (r *beside) stop() time.Duration {
	close(r.end)
	return <-r.longest
}
