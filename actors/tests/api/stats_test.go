package api

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
)

func expectStats(t testing.TB, locks *actors.Locks, requested, waiting, acquired, held, released uint64, lost, refused map[error]uint64) {
	t.Helper()
	s := locks.Stats()
	if s.Requested != requested || uint64(s.Waiting) != waiting || s.Acquired != acquired || uint64(s.Held) != held ||
		s.Released != released || !maps.Equal(s.Lost, lost) || !maps.Equal(s.Refused, refused) {
		t.Errorf("%s", locktest.StatsText(s))
	}
}

// Each way in which a request and a grant can end has its count.
func TestStats(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		mu := locks.Mutex(v.LockPath)
		expectStats(v, locks, 0, 0, 0, 0, 0, nil, nil)
		g := locktest.Lock(v, mu)
		first, second := mu.Acquire(locktest.Within(v)), mu.Acquire(locktest.Within(v))
		synctest.Wait() // the lock may be busy with an answer: then a request waits in its mailbox
		expectStats(v, locks, 3, 2, 1, 1, 0, nil, nil)
		_, err := mu.Lock(locktest.Within(v), actors.Try())
		locktest.Is(v, err, actors.ErrNotAcquired)
		_, err = mu.Lock(locktest.Within(v), actors.WithTimeout(time.Second))
		locktest.Is(v, err, actors.ErrTimedOut)
		_, err = mu.Lock(locktest.Within(v), actors.Permits(2))
		locktest.Is(v, err, actors.ErrInvalid)
		second.Cancel()
		synctest.Wait()
		refused := map[error]uint64{actors.ErrNotAcquired: 1, actors.ErrTimedOut: 1, actors.ErrInvalid: 1, actors.ErrCancelled: 1}
		expectStats(v, locks, 6, 1, 1, 1, 0, nil, refused)
		g.Release()
		synctest.Wait()
		expectStats(v, locks, 6, 0, 2, 1, 1, nil, refused)
		first.Cancel() // it is granted, and no call has returned the grant
		synctest.Wait()
		expectStats(v, locks, 6, 0, 2, 0, 2, nil, refused)
		synctest.Wait()
		if s := locks.Stats(); s.LocalHandOffs != 1 || s.RemoteHandOffs != 0 || s.Suspensions+s.SessionsLost != 0 || s.Session.Epoch != 1 {
			v.Errorf("%+v", s)
		}

		named := locktest.Lock(v, mu, actors.WithOwner("me"))
		v.Expire(locks.Session().ID)
		locktest.Closes(v, named.Done(), "the lost grant")
		synctest.Wait()
		expectStats(v, locks, 7, 0, 3, 0, 2, map[error]uint64{actors.ErrSessionLost: 1}, refused)
		named.Release()
		last := locktest.Lock(v, mu)
		if broken, err := locks.Revoke(locktest.Within(v), last.Node(), time.Nanosecond); !broken || err != nil {
			v.Errorf("%v, %v", broken, err)
		}
		locktest.Closes(v, last.Done(), "the deleted grant")
		closed := locktest.Lock(v, mu)
		waiting := mu.Acquire(locktest.Within(v))
		s := locks.Stats()
		if s.SessionsLost != 1 || s.Session.Epoch != 2 || s.Session.State != messages.SessionState_CONNECTED {
			v.Errorf("%+v", s)
		}
		locktest.Must(v, locks.Close())
		locktest.Is(v, closed.Err(), actors.ErrClosed)
		locktest.Is(v, locktest.Failure(v, waiting), actors.ErrClosed)
		refused[actors.ErrClosed] = 1
		expectStats(v, locks, 10, 0, 5, 0, 2, map[error]uint64{actors.ErrSessionLost: 1, actors.ErrNodeDeleted: 1, actors.ErrClosed: 1}, refused)
	})
}

// A lock that goes from one process to another is a remote hand-off; one that is free is none.
func TestStatsHandOffs(t *testing.T) {
	t.Parallel()
	for _, r := range locktest.Named("mutex", "local queue") {
		t.Run(r.Name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				here := v.Locks()
				there := v.Locks()
				for n := range uint64(3) {
					locktest.Unlock(v, locktest.Lock(v, r.At(here, v.LockPath)))
					locktest.Unlock(v, locktest.Lock(v, r.At(there, v.LockPath)))
					g := locktest.Lock(v, r.At(there, v.LockPath))
					first, second := r.At(here, v.LockPath).Acquire(locktest.Within(v)), r.At(here, v.LockPath).Acquire(locktest.Within(v))
					synctest.Wait()
					locktest.Unlock(v, g)
					locktest.Unlock(v, locktest.Result(v, first))
					locktest.Unlock(v, locktest.Result(v, second))
					if s := here.Stats(); s.LocalHandOffs != n+1 || s.RemoteHandOffs != n+1 {
						v.Errorf("after %d of each: %d local and %d remote hand-offs", n+1, s.LocalHandOffs, s.RemoteHandOffs)
					}
				}
				if s := here.Stats(); s.Batches == 0 || s.BatchOperations < s.Batches {
					v.Errorf("%d batches with %d operations", s.Batches, s.BatchOperations)
				}
			})
		})
	}
}

// requestCounts are the counts that a random history expects.
type requestCounts struct {
	requested, acquired, released, lost, refused uint64
	waiting, held                                int
}

// Whatever happens to requests of any recipe, the counters agree with the results that their owners
// get.
func TestStatsHistory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) { statsHistory(v, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func statsHistory(v *locktest.Virtual, random *rand.Rand) {
	m := locktest.NewCountingMonitor(v)
	locks := v.Locks(m.Config)
	mu := locks.Mutex(v.LockPath)
	rw, sem := locks.RWMutex("/rw"), locks.Semaphore("/sem", 2)
	all := []locktest.Handle{mu, rw.Read(), rw.Write(), sem, locks.Mutex("/local", actors.LocalQueue(actors.LocalQueueConfig{})),
		locks.MultiLock(mu, rw.Write())}
	var waiting []*actors.Future[*actors.Grant]
	var held []*actors.Grant
	want := requestCounts{}
	count := func() { // the requests that are granted, refused or lost by now
		synctest.Wait()
		waiting = slices.DeleteFunc(waiting, func(f *actors.Future[*actors.Grant]) bool {
			if !locktest.IsClosed(f.Done()) {
				return false
			}
			if g, err := f.Result(); err != nil {
				want.refused++
			} else {
				want.acquired++
				held = append(held, g)
			}
			return true
		})
		held = slices.DeleteFunc(held, func(g *actors.Grant) bool {
			if g.Err() == nil {
				return false
			}
			want.lost++
			g.Release()
			return true
		})
		want.waiting, want.held = len(waiting), len(held)
	}
	check := func(when string) {
		v.Helper()
		count()
		synctest.Wait()
		s := locks.Stats()
		var lost, refused uint64
		for _, n := range s.Lost {
			lost += n
		}
		for _, n := range s.Refused {
			refused += n
		}
		if got := (requestCounts{s.Requested, s.Acquired, s.Released, lost, refused, s.Waiting, s.Held}); got != want {
			v.Fatalf("%s: counted %+v, want %+v", when, got, want)
		}
		if err := m.Compare(s); err != nil {
			v.Fatalf("%s: %v", when, err)
		}
		if len(locks.OpenRequests()) != want.waiting+want.held {
			v.Fatalf("%s: open %v, want %+v", when, locks.OpenRequests(), want)
		}
	}
	for range 60 {
		switch n := random.IntN(12); {
		case n < 6:
			var options []actors.Option
			switch random.IntN(4) {
			case 0:
				options = []actors.Option{actors.Try()}
			case 1:
				options = []actors.Option{actors.WithTimeout(time.Second)}
			case 2:
				options = []actors.Option{actors.WithOwner(actors.Owner(fmt.Sprint("owner", random.IntN(3))))}
			}
			waiting = append(waiting, all[random.IntN(len(all))].Acquire(locktest.Within(v.T), options...))
			want.requested++
		case n < 9 && len(held) > 0:
			i := random.IntN(len(held))
			held[i].Release()
			held = slices.Delete(held, i, i+1)
			want.released++
		case n < 10 && len(waiting) > 0:
			i := random.IntN(len(waiting))
			waiting[i].Cancel()
		case n == 10:
			<-time.After(time.Second)
		case random.IntN(4) == 0:
			v.Expire(locks.Session().ID)
			<-time.After(3 * time.Second)
		}
		<-time.After(50 * time.Millisecond)
		check("meanwhile")
	}
	for len(waiting)+len(held) > 0 {
		for _, g := range held {
			g.Release()
			want.released++
		}
		held = nil
		<-time.After(time.Second)
		check("at the end")
	}
	if s := locks.Stats(); s.Waiting != 0 || s.Held != 0 {
		v.Errorf("at the end: %s", locktest.StatsText(s))
	}
}
