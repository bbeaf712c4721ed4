package actors_test

import (
	"context"
	"math"
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

// onChroot runs f on both servers. The path of the testLock is a chroot that does not exist yet. So
// it has a generation of its own.
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

// Several processes raise the first generation at one time. Each call returns a greater generation
// than the process has read before.
func TestRaiseGenerationTogether(t *testing.T) {
	t.Parallel()
	onChroot(t, func(b *testLock) {
		var mu sync.Mutex
		var greatest uint64
		var raising sync.WaitGroup
		for range 4 {
			locks := b.chroot()
			raising.Go(func() {
				for last := range 3 {
					was, err := locks.Generation(within(b))
					must(b, err)
					g, err := locks.RaiseGeneration(within(b))
					if err != nil || g <= was {
						b.Errorf("raise %d: %d after %d, %v", last, g, was, err)
					}
					mu.Lock()
					greatest = max(greatest, g)
					mu.Unlock()
				}
			})
		}
		raising.Wait()
		if g := b.generation(b.chroot()); g != greatest {
			b.Errorf("generation %d, raised to %d", g, greatest)
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

// Where only their creator has rights to the nodes of locks, all clients may read the generation,
// and only the creator may raise it.
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
		unlock(b, lock(b, mu)) // so that there is a directory
		contend := func(name string) (node string, czxid int64) {
			_, err := conn.Create(b.path+"/lock/"+name, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			must(b, err)
			_, stat, err := conn.Exists(b.path + "/lock/" + name)
			must(b, err)
			return "/lock/" + name, stat.Czxid
		}
		verify := func(node string, czxid int64, held bool, generations ...uint64) {
			b.Helper()
			for _, g := range generations {
				err := locks.VerifyToken(within(b), node, actors.Token{Generation: g, Czxid: czxid})
				if held {
					must(b, err)
				} else {
					is(b, err, actors.ErrNotHeld)
				}
			}
		}
		token := func(i int) actors.Token {
			b.Helper()
			all, err := mu.Participants(within(b))
			must(b, err)
			return all[i].Token
		}
		node, czxid := contend("a-lock-0000000001") // of another client, so that it lives on
		verify(node, czxid, true, 0)
		verify(node, czxid, false, 1, math.MaxUint64)
		first := b.raiseGeneration(locks)
		verify(node, czxid, true, 0)
		verify(node, czxid, false, first+1)

		next, nextCzxid := contend("b-lock-0000000002")
		verify(next, nextCzxid, true, first)
		verify(next, nextCzxid, false, 0, first-1, first+1)
		if g := token(1).Generation; g != first {
			b.Errorf("generation %d, want %d", g, first)
		}
		second := b.raiseGeneration(locks)
		verify(next, nextCzxid, true, 0, first) // any earlier generation is possible
		verify(next, nextCzxid, false, second+1)
		if g := token(1).Generation; g != 0 {
			b.Errorf("generation %d of a node from before the last raise", g)
		}
	})
}

// A raise costs each process its session once, and the holders their grants; later grants have the
// new generation.
func TestRaiseGenerationEndsGrants(t *testing.T) {
	onChroot(t, func(b *testLock) {
		locks, others := b.chroot(), b.chroot()
		for _, l := range []*actors.Locks{locks, others} {
			held := lock(b, l.Mutex("/lock"))
			raised := b.raiseGeneration(locks)
			<-held.Done()
			is(b, held.Err(), actors.ErrSessionLost)
			contains(b, held.Err().Error(), "the generation of tokens has changed")
			next := lock(b, l.Mutex("/lock")) // when the former session is closed
			if token := next.Token(); token.Generation != raised || token.Compare(held.Token()) <= 0 {
				b.Errorf("token %v after %v, raised to %d", token, held.Token(), raised)
			}
			unlock(b, next)
		}
	})
}

// A raise that waits for the next session ends with its context, and with the Locks.
func TestRaiseGenerationWithoutASession(t *testing.T) {
	each(t, func(b *testLock) {
		proxy := zktest.Proxy(b, b.Addr())
		locks := connect(b.T, proxy.Addr(), func(cfg *actors.Config) { cfg.SessionTimeout = time.Second })
		proxy.Refuse(true)
		proxy.Cut()
		for s := range locks.Sessions(within(b)) { // Stats knows it before the bridge has told it
			if s.State == messages.SessionState_LOST {
				break
			}
		}
		ctx, cancel := context.WithTimeout(b.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := locks.RaiseGeneration(ctx)
		is(b, err, context.DeadlineExceeded)
		is(b, err, actors.ErrSuspended)
		closed := make(chan error)
		go func() {
			_, err := locks.RaiseGeneration(within(b))
			closed <- err
		}()
		locks.Close()
		is(b, <-closed, actors.ErrClosed)
	})
}
