package remote_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// user asks for locks, holds them and releases them, over and over.
func (w *world) user(c *clientProcess, n int, r *rand.Rand) {
	for i := 0; !w.calm.Load() && !c.dead.Load(); i++ {
		path := fmt.Sprintf("/locks/%d", r.IntN(2))
		options := []actors.Option{}
		if r.IntN(2) == 0 {
			options = append(options, actors.WithOwner(actors.Owner(fmt.Sprintf("owner%d", n))))
		}
		switch r.IntN(8) {
		case 0:
			options = append(options, actors.Try())
		case 1:
			options = append(options, actors.WithTimeout(time.Duration(r.Int64N(int64(3*time.Second)))+1))
		case 2:
			options = append(options, actors.HoldAtMost(time.Duration(r.Int64N(int64(3*time.Second)))+1))
		case 3:
			options = append(options, actors.FailOnSessionLoss())
		}
		rw := c.locks.RWMutex(path)
		write := r.IntN(3) > 0
		lock := rw.Read()
		if write {
			lock = rw.Write()
		}
		ctx, cancel := context.WithCancel(context.Background())
		if r.IntN(6) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(r.Int64N(int64(5*time.Second))))
		}
		g, err := lock.Lock(ctx, options...)
		cancel()
		if err != nil {
			w.checkError(c, err)
			<-time.After(time.Duration(r.Int64N(int64(time.Second))))
			continue
		}
		w.grants.Add(1)
		w.logf("%s/%d holds %s %v", c.name, n, path, g.Token())
		e := believer{c, g, write}
		w.ledger.enter(w, path, e)
		hold := time.Duration(r.Int64N(int64(2 * time.Second)))
		if r.IntN(8) == 0 {
			hold *= 8
		}
		for end := time.Now().Add(hold); time.Now().Before(end) && g.Err() == nil; {
			<-time.After(min(50*time.Millisecond, time.Until(end)))
			w.ledger.check(w, path, e)
		}
		w.ledger.leave(path, e)
		w.logf("%s/%d releases %s %v: %v", c.name, n, path, g.Token(), g.Err())
		if r.IntN(4) == 0 {
			g.Release()
			continue
		}
		ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
		if err := g.Unlock(ctx); err != nil {
			w.checkError(c, err)
			if ctx.Err() != nil && !c.dead.Load() {
				w.Errorf("%s: a release has no answer within a minute: %v", c.name, err)
			}
		}
		cancel()
	}
}

// checkError checks that an error is one that the history explains.
func (w *world) checkError(c *clientProcess, err error) {
	for _, want := range []error{actors.ErrNotAcquired, actors.ErrTimedOut, actors.ErrSessionLost, actors.ErrSuspended, actors.ErrHoldExpired, actors.ErrNodeDeleted, context.DeadlineExceeded} {
		if errors.Is(err, want) {
			return
		}
	}
	if c.dead.Load() && errors.Is(err, actors.ErrClosed) {
		return
	}
	w.Errorf("%s: %v", c.name, err)
}

// ledger holds the grants that clients believe in.
type ledger struct {
	mu     sync.Mutex
	held   map[string][]believer
	newest map[string]actors.Token
}

type believer struct {
	client *clientProcess
	grant  *actors.Grant
	write  bool
}

func (l *ledger) enter(w *world, path string, e believer) {
	l.mu.Lock()
	l.held[path] = append(l.held[path], e)
	if e.write {
		if e.grant.Token().Compare(l.newest[path]) <= 0 && !e.client.dead.Load() && e.grant.Err() == nil {
			w.Errorf("%s: token %v of %s comes after %v", path, e.grant.Token(), e.client.name, l.newest[path])
		}
		l.newest[path] = e.grant.Token()
	}
	l.mu.Unlock()
	l.check(w, path, e)
}

// check checks that no other client believes in a grant that conflicts with e, if e is believed in.
func (l *ledger) check(w *world, path string, e believer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.grant.Err() != nil || e.client.dead.Load() {
		return
	}
	for _, other := range l.held[path] {
		if other.grant == e.grant || !other.write && !e.write || other.client.dead.Load() || other.grant.Err() != nil {
			continue
		}
		w.Errorf("%v: %s: %s holds by %v, and %s by %v", time.Since(w.began), path, e.client.name, e.grant, other.client.name, other.grant)
	}
}

func (l *ledger) leave(path string, e believer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.held[path] {
		if other.grant == e.grant {
			l.held[path] = append(l.held[path][:i], l.held[path][i+1:]...)
			return
		}
	}
}
