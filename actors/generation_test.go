package actors_test

import (
	"errors"
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

// ensemble is a chroot, which does not exist yet, and so has a generation of its own.
type ensemble struct {
	*testing.T
	*zktest.Server
	root string
}

func onEnsemble(t *testing.T, f func(e *ensemble)) {
	t.Helper()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		sharesServer(t, s)
		f(&ensemble{t, s, s.Path(t) + "/app"})
	})
}

func (e *ensemble) locks(configure ...func(*actors.Config)) *actors.Locks {
	e.Helper()
	return connect(e.T, e.Addr()+e.root, configure...)
}

func (e *ensemble) generation(locks *actors.Locks) uint64 {
	e.Helper()
	g, err := locks.Generation(within(e))
	must(e, err)
	return g
}

func (e *ensemble) raise(locks *actors.Locks) uint64 {
	e.Helper()
	g, err := locks.RaiseGeneration(within(e))
	must(e, err)
	return g
}

// set writes the node as an operator may with a shell, whatever it is.
func (e *ensemble) set(text string) {
	e.Helper()
	_, err := e.Client(e).Set(e.root+zkbridge.GenerationPath, []byte(text), -1)
	must(e, err)
}

func TestRaiseGeneration(t *testing.T) {
	onEnsemble(t, func(e *ensemble) {
		locks, others := e.locks(), e.locks()
		if g := e.generation(locks); g != 0 {
			e.Errorf("generation %d, and none was raised", g)
		}
		now := uint64(time.Now().Unix())
		first := e.raise(locks)
		if first < now || e.generation(locks) != first || e.generation(others) != first {
			e.Errorf("generation %d at %d", first, now)
		}
		data, _, err := e.Client(e).Get(e.root + "/actorlock/generation")
		if string(data) != strconv.FormatUint(first, 10) || err != nil {
			e.Errorf("data %q, %v", data, err)
		}
		second := e.raise(others)
		if second <= first || e.generation(locks) != second {
			e.Errorf("generation %d after %d", second, first)
		}
		e.set(strconv.FormatUint(1<<40, 10)) // by a clock that is ahead of ours
		if g := e.raise(locks); g != 1<<40+1 {
			e.Errorf("generation %d after %d", g, uint64(1<<40))
		}
		must(e, e.Client(e).Delete(e.root+"/actorlock/generation", -1))
		if g := e.generation(locks); g != 0 {
			e.Errorf("generation %d without a node", g)
		}
		if g := e.raise(locks); g < now || g >= 1<<40 {
			e.Errorf("generation %d, made anew", g)
		}
	})
}

// Two processes raise the first generation at the same time, and do not raise it to the same number.
func TestRaiseGenerationTogether(t *testing.T) {
	t.Parallel()
	onEnsemble(t, func(e *ensemble) {
		for range 3 {
			var mu sync.Mutex
			var all []uint64
			var raising sync.WaitGroup
			for range 4 {
				locks := e.locks()
				raising.Go(func() {
					for range 3 {
						g, err := locks.RaiseGeneration(within(e))
						if err != nil {
							e.Error(err)
						}
						mu.Lock()
						all = append(all, g)
						mu.Unlock()
					}
				})
			}
			raising.Wait()
			slices.Sort(all)
			if len(slices.Compact(slices.Clone(all))) != 12 || e.generation(e.locks()) != all[11] {
				e.Errorf("generations %d, at last %d", all, e.generation(e.locks()))
			}
			e.root += "/app"
		}
	})
}

func TestGenerationOfUnusableData(t *testing.T) {
	onEnsemble(t, func(e *ensemble) {
		locks := e.locks()
		e.raise(locks)
		for _, text := range []string{"", "seven", "-1"} {
			e.set(text)
			_, err := locks.Generation(within(e))
			isClear(e.T, err, strconv.Quote(text))
			_, err = locks.RaiseGeneration(within(e))
			isClear(e.T, err, strconv.Quote(text))
		}
		e.set(strconv.FormatUint(math.MaxUint64, 10))
		if g := e.generation(locks); g != math.MaxUint64 {
			e.Errorf("generation %d", g)
		}
		_, err := locks.RaiseGeneration(within(e))
		isClear(e.T, err, "18446744073709551615")
	})
}

// Where only their creator may do anything with the nodes of locks, all may read the
// generation, and only the creator may raise it.
func TestGenerationIsReadable(t *testing.T) {
	onEnsemble(t, func(e *ensemble) {
		conn := e.Client(e)
		for _, path := range []string{e.root[:len(e.root)-len("/app")], e.root} { // the chroot is not its own
			_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
			must(e, err)
		}
		owner := e.locks(func(cfg *actors.Config) {
			cfg.Auth, cfg.ACL = []zkbridge.Auth{{Scheme: "digest", Credential: "owner:secret"}}, zkbridge.CreatorAll()
		})
		g := e.raise(owner)
		stranger := e.locks()
		if got := e.generation(stranger); got != g {
			e.Errorf("generation %d, want %d", got, g)
		}
		_, err := stranger.RaiseGeneration(within(e))
		is(e, err, messages.Reason_NO_AUTH)
		if again := e.raise(owner); again <= g {
			e.Errorf("generation %d after %d", again, g)
		}
	})
}

// A token is of the generation that was in force when its node was made; of a node from
// before the last raise it may be of any that is not greater.
func TestVerifyTokenOfAGeneration(t *testing.T) {
	onEnsemble(t, func(e *ensemble) {
		locks, conn := e.locks(), e.Client(e)
		mu := locks.Mutex("/lock")
		verify := func(node string, held bool, generations ...uint64) {
			e.Helper()
			exists, stat, err := conn.Exists(e.root + node)
			if err != nil || !exists {
				e.Fatalf("%v, %v", exists, err)
			}
			for _, g := range generations {
				err := locks.VerifyToken(within(e), node, actors.Token{Generation: g, Czxid: stat.Czxid})
				if held {
					must(e, err)
				} else {
					is(e, err, actors.ErrNotHeld)
				}
			}
		}
		old := lock(e, mu)
		verify(old.Node(), true, 0)
		verify(old.Node(), false, 1, math.MaxUint64)
		first := e.raise(locks)
		verify(old.Node(), true, 0)
		verify(old.Node(), false, first+1)
		unlock(e, old)

		next := lock(e, mu)
		verify(next.Node(), true, first)
		verify(next.Node(), false, 0, first-1, first+1)
		second := e.raise(locks)
		verify(next.Node(), true, 0, first) // it is not known any more which one it was
		verify(next.Node(), false, second+1)
		all, err := mu.Participants(within(e))
		if err != nil || len(all) != 1 || all[0].Token.Generation != 0 {
			e.Errorf("%+v, %v", all, err)
		}
		unlock(e, next)

		last := lock(e, mu)
		all, err = mu.Participants(within(e))
		if err != nil || len(all) != 1 || all[0].Token.Generation != second {
			e.Errorf("%+v, %v; the generation is %d", all, err, second)
		}
		unlock(e, last)
	})
}

// A downgraded reader has its writer's token, with the generation of the writer.
func TestVerifyTokenOfADowngradedReaderOfAGeneration(t *testing.T) {
	onEnsemble(t, func(e *ensemble) {
		locks := e.locks()
		first := e.raise(locks)
		rw := locks.RWMutex("/lock")
		w := lock(e, rw.Write(), actors.WithOwner("me"))
		_, stat, err := e.Client(e).Exists(e.root + w.Node())
		must(e, err)
		second := e.raise(locks)
		r := lock(e, rw.Read(), actors.WithOwner("me"))
		unlock(e, w)
		token := actors.Token{Generation: first, Czxid: stat.Czxid}
		must(e, locks.VerifyToken(within(e), r.Node(), token))
		token.Generation = second + 1
		is(e, locks.VerifyToken(within(e), r.Node(), token), actors.ErrNotHeld)
		unlock(e, r)
	})
}

// Where the generation cannot be read there are no tokens: a simple mutex, whose nodes are made by
// a transaction of its own, is refused as the others are, and no node is left.
func TestSimpleMutexWithoutGeneration(t *testing.T) {
	onEnsemble(t, func(e *ensemble) {
		locks := e.locks()
		e.raise(locks)
		first, err := locks.SimpleMutex("/s").Lock(within(e))
		must(e, err)
		unlock(e, first)
		_, err = e.Client(e).SetACL(e.root+zkbridge.GenerationPath, zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
		must(e, err)
		others := e.locks()
		grant, err := others.SimpleMutex("/s").Lock(within(e))
		if err == nil {
			e.Errorf("granted with token %v after %v", grant.Token(), first.Token())
			unlock(e, grant)
		} else if !errors.Is(err, messages.Reason_NO_AUTH) {
			e.Errorf("%v", err)
		}
		zktest.Eventually(e, patience, func() bool { return len(e.Nodes(e, e.root+"/s")) == 0 }, "nodes are left")
	})
}
