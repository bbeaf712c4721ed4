package recipes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// Processes with and without a local queue read and write at random, downgrade, try and time out.
// No writer holds beside another holder, and tokens grow.
func TestLocalReadWriteBasic(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		busy := actors.LocalQueue(actors.LocalQueueConfig{Grants: 5, Time: 5 * time.Millisecond, Linger: 10 * time.Millisecond})
		l := locktest.NewLedger(b)
		n := 0
		var wg sync.WaitGroup
		for _, rw := range []*actors.RWMutex{b.LocalRWMutex(busy), b.LocalRWMutex(locktest.ShortLinger), b.RWMutex()} {
			for range 4 {
				n++
				owner := actors.Owner(fmt.Sprint(n))
				wg.Go(func() {
					for range 40 {
						if err := useOnce(l, locktest.Within(b), rw, actors.WithOwner(owner)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
		b.Logf("%d grants", l.Grants[b.LockPath])
	})
}

// downgraded is the grant of a reader that has the writer's token: it goes on after the writer's
// release.
type downgraded struct{ *actors.Grant }

func (downgraded) Err() error { return nil }

// useOnce reads or writes once.
func useOnce(l *locktest.Ledger, ctx context.Context, rw *actors.RWMutex, owner actors.Option) error {
	write := rand.IntN(3) == 0
	mode, options, share := rw.Read(), []actors.Option{owner}, locktest.Reader(rw.Read().Path())
	if write {
		mode, share = rw.Write(), locktest.Whole(rw.Read().Path())
	}
	switch rand.IntN(6) {
	case 0:
		options = append(options, actors.Try())
	case 1:
		options = append(options, actors.WithTimeout(rand.N(3*time.Millisecond)+1))
	}
	g, err := mode.Lock(ctx, options...)
	if errors.Is(err, actors.ErrNotAcquired) || errors.Is(err, actors.ErrTimedOut) {
		return nil
	}
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%p", g)
	l.Enter(name, g, share)
	if !write || rand.IntN(3) > 0 {
		l.Leave(g)
		return g.Unlock(ctx)
	}
	f := rw.Read().Acquire(ctx, owner)
	if rand.IntN(2) == 0 {
		if _, err := f.Result(); err != nil {
			return err
		}
	}
	l.Enter(name, downgraded{g}, locktest.Reader(rw.Read().Path()))
	l.Leave(g)
	released := g.Release()
	r, err := f.Result()
	if err != nil {
		return err
	}
	if r.Token() != g.Token() {
		return fmt.Errorf("token %v of the reader, %v of the writer", r.Token(), g.Token())
	}
	l.Leave(downgraded{g})
	_, err = released.Result()
	return errors.Join(err, r.Unlock(ctx))
}
