package costs

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/bare"
)

// newPathRecipe is a recipe on new paths, and what a bare peer writes for the same.
type newPathRecipe struct {
	name         string
	acquire      func(locks *actors.Locks, path string) *actors.Future[*actors.Grant]
	write, clean func(peer *bare.Baseline, dir string, n int)
}

var newPathRecipes = []newPathRecipe{
	{"mutex", func(locks *actors.Locks, path string) *actors.Future[*actors.Grant] {
		return locks.Mutex(path).Acquire(context.Background())
	}, (*bare.Baseline).Mutexes, (*bare.Baseline).DeleteMutexes},
	{"semaphore", func(locks *actors.Locks, path string) *actors.Future[*actors.Grant] {
		return locks.Semaphore(path, 2).Acquire(context.Background())
	}, (*bare.Baseline).Semaphores, (*bare.Baseline).DeleteSemaphores},
	{"multilock", func(locks *actors.Locks, path string) *actors.Future[*actors.Grant] {
		return locks.MultiLock(locks.Mutex(path+"-a"), locks.Mutex(path+"-b")).Acquire(context.Background())
	}, func(peer *bare.Baseline, dir string, n int) { peer.Mutexes(dir, 2*n) },
		func(peer *bare.Baseline, dir string, n int) { peer.DeleteMutexes(dir, 2*n) }},
}

// BenchmarkNewPaths is n acquires at one moment, each on a path without a directory, and in
// alternation the same writes without a lock. What each costs must not grow with n. The figures are
// medians over the rounds: x-bare of the time of the locks, by that of the bare writes; ms-beside of
// the longest time that another lock took to be acquired meanwhile; ms-beside-bare of the longest
// time that a node took to be made beside the bare writes.
func BenchmarkNewPaths(b *testing.B) {
	for _, recipe := range newPathRecipes {
		for _, n := range []int{1000, 2000, 4000, 8000, 20_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", recipe.name, n), func(b *testing.B) {
				eachServer(b, func(b *testing.B, s *zktest.Server) {
					benchmarkNewPaths(b, s, recipe, n)
				}, zktest.Heap(2048))
			})
		}
	}
}

func benchmarkNewPaths(b *testing.B, s *zktest.Server, recipe newPathRecipe, n int) {
	peer, directory := bare.Connect(b, s), s.Path(b)
	peer.MakeDirectory(directory)
	var times, besides [2][]time.Duration // of the peer, and of the locks
	for round := 0; b.Loop(); round++ {
		for turn := range 2 {
			dir := s.Path(b)
			runtime.GC()
			var took, longest time.Duration
			ours := (round + turn) % 2
			if ours == 1 {
				took, longest = acquireNew(b, s, recipe, dir, n)
			} else {
				peer.MakeDirectory(dir)
				took, longest = withBeside(func() time.Duration { return peer.Create(directory) }, func() { recipe.write(peer, dir, n) })
				recipe.clean(peer, dir, n)
			}
			for len(s.Nodes(b, dir)) > 0 && !s.Real() { // what a round leaves is not the next one's
				<-time.After(10 * time.Millisecond)
			}
			times[ours], besides[ours] = append(times[ours], took), append(besides[ours], longest)
		}
	}
	ratios := make([]float64, len(times[0]))
	for i := range ratios {
		ratios[i] = float64(times[1][i]) / float64(times[0][i])
	}
	b.ReportMetric(float64(median(times[1]).Nanoseconds())/float64(n), "ns/lock")
	b.ReportMetric(median(ratios), "x-bare")
	for i, name := range []string{"ms-beside-bare", "ms-beside"} {
		b.ReportMetric(float64(median(besides[i]).Microseconds())/1000, name)
	}
	b.ReportMetric(0, "ns/op") // it would be of both, and of what no acquire needs
}

func median[T cmp.Ordered](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}

// acquireNew acquires n locks on new paths at one moment, by a session of its own. It returns how
// long that took, and the longest acquire of another lock meanwhile.
func acquireNew(b *testing.B, s *zktest.Server, recipe newPathRecipe, dir string, n int) (took, longest time.Duration) {
	locks, err := actors.Connect(b.Context(), s.Addr(), actors.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer locks.Close()
	other := locks.Mutex(s.Path(b))
	lockAndUnlock(b, other)
	pending := make([]*actors.Future[*actors.Grant], n)
	took, longest = withBeside(func() time.Duration {
		began := time.Now()
		g, err := other.Lock(context.Background())
		took := time.Since(began)
		if err == nil {
			err = g.Unlock(context.Background())
		}
		if err != nil {
			b.Error(err)
		}
		return took
	}, func() {
		for i := range pending {
			pending[i] = recipe.acquire(locks, fmt.Sprintf("%s/%d", dir, i))
		}
		for _, f := range pending {
			if _, err := f.Result(); err != nil {
				b.Fatal(err)
			}
		}
	})
	releaseAll(b, pending)
	return took, longest
}

func releaseAll(b *testing.B, granted []*actors.Future[*actors.Grant]) {
	b.Helper()
	released := make([]*actors.Future[struct{}], len(granted))
	for i, f := range granted {
		g, err := f.Result()
		if err != nil {
			b.Fatal(err)
		}
		released[i] = g.Release()
	}
	for _, f := range released {
		if _, err := f.Result(); err != nil {
			b.Fatal(err)
		}
	}
}

// withBeside runs f and returns how long it took. It calls beside again and again meanwhile, and
// returns the longest time that beside has returned.
func withBeside(beside func() time.Duration, f func()) (took, longest time.Duration) {
	end, ended := make(chan struct{}), make(chan time.Duration)
	go func() {
		var longest time.Duration
		for {
			select {
			case <-end:
				ended <- longest
				return
			default:
				longest = max(longest, beside())
			}
		}
	}()
	began := time.Now()
	f()
	took = time.Since(began)
	close(end)
	return took, <-ended
}
