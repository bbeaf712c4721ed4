package failures

import (
	"context"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestRaiseGeneration(t *testing.T) {
	t.Parallel()
	locktest.OnChroot(t, func(b *locktest.Fixture) {
		locks, others := b.Chroot(), b.Chroot()
		if g := b.Generation(locks); g != 0 {
			b.Errorf("generation %d before the first raise", g)
		}
		now := uint64(time.Now().Unix())
		first := b.RaiseGeneration(locks)
		if first < now || b.Generation(locks) != first || b.Generation(others) != first {
			b.Errorf("generation %d at %d", first, now)
		}
		data, _, err := b.Client(b).Get(b.LockPath + "/actorlock/generation")
		if string(data) != strconv.FormatUint(first, 10) || err != nil {
			b.Errorf("data %q, %v", data, err)
		}
		second := b.RaiseGeneration(others)
		if second <= first || b.Generation(locks) != second {
			b.Errorf("generation %d after %d", second, first)
		}
		b.SetGeneration(strconv.FormatUint(1<<40, 10)) // by a clock that is ahead of ours
		if g := b.RaiseGeneration(locks); g != 1<<40+1 {
			b.Errorf("generation %d after %d", g, uint64(1<<40))
		}
		locktest.Lock(b, locks.Mutex("/lock")) // the process has read the node
		locktest.Must(b, b.Client(b).Delete(b.LockPath+"/actorlock/generation", -1))
		// Not greater, if the other process has not seen the last one, and is first: czxids go on.
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return b.Generation(others) >= 1<<40+1 }, "a process that knows the generation raises it again")
	})
}

// Several processes raise the first generation at one time. Each call returns a greater generation
// than the process has read before.
func TestRaiseGenerationTogether(t *testing.T) {
	t.Parallel()
	locktest.OnChroot(t, func(b *locktest.Fixture) {
		var mu sync.Mutex
		var greatest uint64
		var raising sync.WaitGroup
		for range 4 {
			locks := b.Chroot()
			raising.Go(func() {
				for last := range 3 {
					was, err := locks.Generation(locktest.Within(b))
					locktest.Must(b, err)
					g, err := locks.RaiseGeneration(locktest.Within(b))
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
		if g := b.Generation(b.Chroot()); g != greatest {
			b.Errorf("generation %d, raised to %d", g, greatest)
		}
	})
}

func TestGenerationOfUnusableData(t *testing.T) {
	t.Parallel()
	locktest.OnChroot(t, func(b *locktest.Fixture) {
		locks := b.Chroot()
		b.RaiseGeneration(locks)
		for _, text := range []string{"", "seven", "-1"} {
			b.SetGeneration(text)
			_, err := locks.Generation(locktest.Within(b))
			locktest.ExpectClear(b.T, err, strconv.Quote(text))
			_, err = locks.RaiseGeneration(locktest.Within(b))
			locktest.ExpectClear(b.T, err, strconv.Quote(text))
		}
		b.SetGeneration(strconv.FormatUint(math.MaxUint64, 10))
		if g := b.Generation(locks); g != math.MaxUint64 {
			b.Errorf("generation %d", g)
		}
		_, err := locks.RaiseGeneration(locktest.Within(b))
		locktest.ExpectClear(b.T, err, "18446744073709551615")
	})
}

// Where only their creator has rights to the nodes of locks, all clients may read the generation,
// and only the creator may raise it.
func TestGenerationIsReadable(t *testing.T) {
	t.Parallel()
	locktest.OnChroot(t, func(b *locktest.Fixture) {
		conn := b.Client(b)
		for _, path := range []string{b.LockPath[:len(b.LockPath)-len("/app")], b.LockPath} { // the chroot is not its own
			_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
			locktest.Must(b, err)
		}
		owner := b.Chroot(func(cfg *actors.Config) {
			cfg.Auth, cfg.ACL = []zkbridge.Auth{{Scheme: "digest", Credential: "owner:secret"}}, zkbridge.CreatorAll()
		})
		g := b.RaiseGeneration(owner)
		other := b.Chroot()
		if got := b.Generation(other); got != g {
			b.Errorf("generation %d, want %d", got, g)
		}
		_, err := other.RaiseGeneration(locktest.Within(b))
		locktest.Is(b, err, messages.Reason_NO_AUTH)
		if again := b.RaiseGeneration(owner); again <= g {
			b.Errorf("generation %d after %d", again, g)
		}
	})
}

// A token is of the generation that was in force when its node was made; of a node from
// before the last raise it may be of any that is not greater.
func TestVerifyTokenOfAGeneration(t *testing.T) {
	t.Parallel()
	locktest.OnChroot(t, func(b *locktest.Fixture) {
		locks, conn := b.Chroot(), b.Client(b)
		mu := locks.Mutex("/lock")
		_, err := conn.Create(b.LockPath+"/lock", nil, 0, zk.WorldACL(zk.PermAll)) // no container, which the server deletes while it is empty
		locktest.Must(b, err)
		contend := func(name string) (node string, czxid int64) {
			_, err := conn.Create(b.LockPath+"/lock/"+name, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			locktest.Must(b, err)
			_, stat, err := conn.Exists(b.LockPath + "/lock/" + name)
			locktest.Must(b, err)
			return "/lock/" + name, stat.Czxid
		}
		verify := func(node string, czxid int64, held bool, generations ...uint64) {
			b.Helper()
			for _, g := range generations {
				err := locks.VerifyToken(locktest.Within(b), node, actors.Token{Generation: g, Czxid: czxid})
				if held {
					locktest.Must(b, err)
				} else {
					locktest.Is(b, err, actors.ErrNotHeld)
				}
			}
		}
		token := func(i int) actors.Token {
			b.Helper()
			all, err := mu.Participants(locktest.Within(b))
			locktest.Must(b, err)
			return all[i].Token
		}
		node, czxid := contend("a-lock-0000000001") // of another client, so that it lives on
		verify(node, czxid, true, 0)
		verify(node, czxid, false, 1, math.MaxUint64)
		first := b.RaiseGeneration(locks)
		verify(node, czxid, true, 0)
		verify(node, czxid, false, first+1)

		next, nextCzxid := contend("b-lock-0000000002")
		verify(next, nextCzxid, true, first)
		verify(next, nextCzxid, false, 0, first-1, first+1)
		if g := token(1).Generation; g != first {
			b.Errorf("generation %d, want %d", g, first)
		}
		second := b.RaiseGeneration(locks)
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
	t.Parallel()
	locktest.OnChroot(t, func(b *locktest.Fixture) {
		// The lock is free when the former session is closed, the margin after its loss.
		margin := func(cfg *actors.Config) { cfg.Margin = time.Second }
		locks, others := b.Chroot(margin), b.Chroot(margin)
		for _, l := range []*actors.Locks{locks, others} {
			held := locktest.Lock(b, l.Mutex("/lock"))
			raised := b.RaiseGeneration(locks)
			<-held.Done()
			locktest.Is(b, held.Err(), actors.ErrSessionLost)
			if why := held.Err().Error(); !strings.Contains(why, lock.SessionOverdue) { // of a lock that has noticed before it was told
				locktest.ExpectParts(b, why, "the generation of tokens has changed")
			}
			next := locktest.Lock(b, l.Mutex("/lock"))
			if token := next.Token(); token.Generation != raised || token.Compare(held.Token()) <= 0 {
				b.Errorf("token %v after %v, raised to %d", token, held.Token(), raised)
			}
			locktest.Unlock(b, next)
		}
	})
}

// A raise that waits for the next session ends with its context, and with the Locks.
func TestRaiseGenerationWithoutASession(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		proxy := zktest.Proxy(b, b.Addr())
		locks := locktest.Connect(b.T, proxy.Addr(), func(cfg *actors.Config) { cfg.SessionTimeout = time.Second })
		proxy.Refuse(true)
		proxy.Cut()
		for s := range locks.Sessions(locktest.Within(b)) { // Stats knows it before the bridge has told it
			if s.State == messages.SessionState_LOST {
				break
			}
		}
		ctx, cancel := context.WithTimeout(b.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := locks.RaiseGeneration(ctx)
		locktest.Is(b, err, context.DeadlineExceeded)
		locktest.Is(b, err, actors.ErrSuspended)
		closed := make(chan error)
		go func() {
			_, err := locks.RaiseGeneration(locktest.Within(b))
			closed <- err
		}()
		locks.Close()
		locktest.Is(b, <-closed, actors.ErrClosed)
	})
}
