package actors_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// Processes with and without a local queue read and write at random, go from writing to
// reading, try and give up: never a writer beside another, and tokens grow.
func TestLocalReadWriteBasic(t *testing.T) {
	each(t, func(b *testLock) {
		busy := actors.LocalQueue(actors.LocalQueueConfig{Grants: 5, Time: 5 * time.Millisecond, Linger: 10 * time.Millisecond})
		var inside rwInside
		var n atomic.Int32
		var wg sync.WaitGroup
		for _, rw := range []*actors.RWMutex{b.localRW(busy), b.localRW(brief), b.rw()} {
			for range 4 {
				owner := actors.WithOwner(actors.Owner(fmt.Sprint(n.Add(1))))
				wg.Go(func() {
					for range 40 {
						if err := inside.turn(within(b), rw, owner); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
		b.Logf("%d readers at most", inside.most)
	})
}

// rwInside counts the holders of a read-write lock, as they count themselves.
type rwInside struct {
	mu               sync.Mutex
	readers, writers int
	most             int
	read, written    actors.Token // the greatest
}

func (in *rwInside) enter(write bool, token actors.Token) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	beside := in.writers
	if write {
		beside += in.readers
		in.writers++
	} else {
		in.readers++
	}
	in.most = max(in.most, in.readers)
	switch {
	case beside > 0:
		return fmt.Errorf("%d writers and %d readers at once", in.writers, in.readers)
	case token.Compare(in.written) <= 0 || write && token.Compare(in.read) <= 0:
		return fmt.Errorf("token %v (to write: %t) after %v of a writer, %v of a reader", token, write, in.written, in.read)
	case write:
		in.written = token
	case token.Compare(in.read) > 0:
		in.read = token
	}
	return nil
}

func (in *rwInside) leave(write bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if write {
		in.writers--
	} else {
		in.readers--
	}
}

func (in *rwInside) turn(ctx context.Context, rw *actors.RWMutex, owner actors.Option) error {
	write := rand.IntN(3) == 0
	side, options := rw.Read(), []actors.Option{owner}
	if write {
		side = rw.Write()
	}
	switch rand.IntN(6) {
	case 0:
		options = append(options, actors.Try())
	case 1:
		options = append(options, actors.WithTimeout(rand.N(3*time.Millisecond)+1))
	}
	g, err := side.Lock(ctx, options...)
	if errors.Is(err, actors.ErrNotAcquired) || errors.Is(err, actors.ErrTimedOut) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := in.enter(write, g.Token()); err != nil {
		return err
	}
	if !write || rand.IntN(3) > 0 {
		in.leave(write)
		return g.Unlock(ctx)
	}
	f := rw.Read().Acquire(ctx, owner)
	if rand.IntN(2) == 0 {
		if _, err := f.Result(); err != nil {
			return err
		}
	}
	in.mu.Lock()
	in.writers, in.readers = in.writers-1, in.readers+1
	in.mu.Unlock()
	released := g.Release()
	r, err := f.Result()
	if err != nil {
		return err
	}
	if r.Token() != g.Token() {
		return fmt.Errorf("token %v of the reader, %v of the writer", r.Token(), g.Token())
	}
	in.leave(false)
	_, err = released.Result()
	return errors.Join(err, r.Unlock(ctx))
}
