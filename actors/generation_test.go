package actors_test

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// onChroot runs f on both servers. The path of the testLock is a chroot that does not exist yet. So it has a
// generation of its own.
func onChroot(t *testing.T, f func(b *testLock)) {
	t.Helper()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		f(&testLock{T: t, Server: s, path: s.Path(t) + "/app"})
	})
}

// chroot returns Locks with the lock's path as chroot.
func (b *testLock) chroot(configure ...func(*actors.Config)) *actors.Locks {
	b.Helper()
	return connect(b.T, b.Addr()+b.path, configure...)
}

func (b *testLock) generation(locks *actors.Locks) uint64 {
	b.Helper()
	g, err := locks.Generation(within(b))
	must(b, err)
	return g
}

func (b *testLock) raiseGeneration(locks *actors.Locks) uint64 {
	b.Helper()
	g, err := locks.RaiseGeneration(within(b))
	must(b, err)
	return g
}

// setGeneration writes any data into the node, as an operator may.
func (b *testLock) setGeneration(text string) {
	b.Helper()
	_, err := b.Client(b).Set(b.path+zkbridge.GenerationPath, []byte(text), -1)
	must(b, err)
}

func TestRaiseGeneration(t *testing.T) {
	onChroot(t, func(b *testLock) {
		locks, others := b.chroot(), b.chroot()
		if g := b.generation(locks); g != 0 {
			b.Errorf("generation %d before the first raise", g)
		}
		now := uint64(time.Now().Unix())
		first := b.raiseGeneration(locks)
		if first < now || b.generation(locks) != first || b.generation(others) != first {
			b.Errorf("generation %d at %d", first, now)
		}
		data, _, err := b.Client(b).Get(b.path + "/actorlock/generation")
		if string(data) != strconv.FormatUint(first, 10) || err != nil {
			b.Errorf("data %q, %v", data, err)
		}
		second := b.raiseGeneration(others)
		if second <= first || b.generation(locks) != second {
			b.Errorf("generation %d after %d", second, first)
		}
		b.setGeneration(strconv.FormatUint(1<<40, 10)) // by a clock that is ahead of ours
		if g := b.raiseGeneration(locks); g != 1<<40+1 {
			b.Errorf("generation %d after %d", g, uint64(1<<40))
		}
		lock(b, locks.Mutex("/lock")) // the process has read the node
		must(b, b.Client(b).Delete(b.path+"/actorlock/generation", -1))
		zktest.Eventually(b, timeLimit, func() bool { return b.generation(others) > 1<<40+1 }, "a process that knows the generation raises it again")
	})
}

// Several processes raise the first generation at one time, and none to the number of another.
func TestRaiseGenerationTogether(t *testing.T) {
	t.Parallel()
	onChroot(t, func(b *testLock) {
		for range 3 {
			var mu sync.Mutex
			var all []uint64
			var raising sync.WaitGroup
			for range 4 {
				locks := b.chroot()
				raising.Go(func() {
					for range 3 {
						g, err := locks.RaiseGeneration(within(b))
						if err != nil {
							b.Error(err)
						}
						mu.Lock()
						all = append(all, g)
						mu.Unlock()
					}
				})
			}
			raising.Wait()
			slices.Sort(all)
			if len(slices.Compact(slices.Clone(all))) != 12 || b.generation(b.chroot()) != all[11] {
				b.Errorf("generations %d, at last %d", all, b.generation(b.chroot()))
			}
			b.path += "/app"
		}
	})
}

func TestGenerationOfUnusableData(t *testing.T) {
	onChroot(t, func(b *testLock) {
		locks := b.chroot()
		b.raiseGeneration(locks)
		for _, text := range []string{"", "seven", "-1"} {
			b.setGeneration(text)
			_, err := locks.Generation(within(b))
			isClear(b.T, err, strconv.Quote(text))
			_, err = locks.RaiseGeneration(within(b))
			isClear(b.T, err, strconv.Quote(text))
		}
		b.setGeneration(strconv.FormatUint(math.MaxUint64, 10))
		if g := b.generation(locks); g != math.MaxUint64 {
			b.Errorf("generation %d", g)
		}
		_, err := locks.RaiseGeneration(within(b))
		isClear(b.T, err, "18446744073709551615")
	})
}

// Where only their creator has rights to the nodes of locks, all clients may read the generation, and only
// the creator may raise it.
func TestGenerationIsReadable(t *testing.T) {
	onChroot(t, func(b *testLock) {
		conn := b.Client(b)
		for _, path := range []string{b.path[:len(b.path)-len("/app")], b.path} { // the chroot is not its own
			_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
			must(b, err)
		}
		owner := b.chroot(func(cfg *actors.Config) {
			cfg.Auth, cfg.ACL = []zkbridge.Auth{{Scheme: "digest", Credential: "owner:secret"}}, zkbridge.CreatorAll()
		})
		g := b.raiseGeneration(owner)
		other := b.chroot()
		if got := b.generation(other); got != g {
			b.Errorf("generation %d, want %d", got, g)
		}
		_, err := other.RaiseGeneration(within(b))
		is(b, err, messages.Reason_NO_AUTH)
		if again := b.raiseGeneration(owner); again <= g {
			b.Errorf("generation %d after %d", again, g)
		}
	})
}

// A token is of the generation that was in force when its node was made; of a node from
// before the last raise it may be of any that is not greater.
func TestVerifyTokenOfAGeneration(t *testing.T) {
	onChroot(t, func(b *testLock) {
		locks, conn := b.chroot(), b.Client(b)
		mu := locks.Mutex("/lock")
		verify := func(node string, held bool, generations ...uint64) {
			b.Helper()
			exists, stat, err := conn.Exists(b.path + node)
			if err != nil || !exists {
				b.Fatalf("%v, %v", exists, err)
			}
			for _, g := range generations {
				err := locks.VerifyToken(within(b), node, actors.Token{Generation: g, Czxid: stat.Czxid})
				if held {
					must(b, err)
				} else {
					is(b, err, actors.ErrNotHeld)
				}
			}
		}
		old := lock(b, mu)
		verify(old.Node(), true, 0)
		verify(old.Node(), false, 1, math.MaxUint64)
		first := b.raiseGeneration(locks)
		verify(old.Node(), true, 0)
		verify(old.Node(), false, first+1)
		unlock(b, old)

		next := lock(b, mu)
		verify(next.Node(), true, first)
		verify(next.Node(), false, 0, first-1, first+1)
		second := b.raiseGeneration(locks)
		verify(next.Node(), true, 0, first) // any earlier generation is possible
		verify(next.Node(), false, second+1)
		all, err := mu.Participants(within(b))
		if err != nil || len(all) != 1 || all[0].Token.Generation != 0 {
			b.Errorf("%+v, %v", all, err)
		}
		unlock(b, next)

		last := lock(b, mu)
		all, err = mu.Participants(within(b))
		if err != nil || len(all) != 1 || all[0].Token.Generation != second {
			b.Errorf("%+v, %v; the generation is %d", all, err, second)
		}
		unlock(b, last)
	})
}

// A downgraded reader has its writer's token, with the generation of the writer.
func TestVerifyTokenOfADowngradedReaderOfAGeneration(t *testing.T) {
	onChroot(t, func(b *testLock) {
		locks := b.chroot()
		first := b.raiseGeneration(locks)
		rw := locks.RWMutex("/lock")
		w := lock(b, rw.Write(), actors.WithOwner("me"))
		_, stat, err := b.Client(b).Exists(b.path + w.Node())
		must(b, err)
		second := b.raiseGeneration(locks)
		r := lock(b, rw.Read(), actors.WithOwner("me"))
		unlock(b, w)
		token := actors.Token{Generation: first, Czxid: stat.Czxid}
		must(b, locks.VerifyToken(within(b), r.Node(), token))
		token.Generation = second + 1
		is(b, locks.VerifyToken(within(b), r.Node(), token), actors.ErrNotHeld)
		unlock(b, r)
	})
}
