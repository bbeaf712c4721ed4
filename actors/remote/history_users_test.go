package remote_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// user asks for locks, holds them and releases them, over and over.
func (w *world) user(c *clientProcess, n int, r *rand.Rand) {
	for !w.calm.Load() && !c.dead.Load() {
		switch r.IntN(8) {
		case 0:
			w.useMultiLock(c, n, r)
		case 1:
			w.useLocalQueue(c, n, r)
		case 2:
			w.useSemaphore(c, n, r)
		case 3:
			w.useDelayed(c, n, r)
		default:
			w.useReadWrite(c, n, r)
		}
	}
}

func (w *world) useReadWrite(c *clientProcess, n int, r *rand.Rand) {
	path := fmt.Sprintf("/locks/%d", r.IntN(2))
	owner := ""
	if r.IntN(2) == 0 {
		owner = fmt.Sprintf("owner%d", n)
	}
	lock, write := c.locks.RWMutex(path).Read(), r.IntN(3) > 0
	if write {
		lock = c.locks.RWMutex(path).Write()
	}
	if g := w.lock(c, r, lock, owner); g != nil {
		w.hold(c, n, r, believer{path: path, node: g.Node(), grant: g, write: write})
		w.release(c, r, g)
	}
}

// useMultiLock writes to one of two paths, and reads or writes the other one.
func (w *world) useMultiLock(c *clientProcess, n int, r *rand.Rand) {
	first := r.IntN(2)
	paths := []string{fmt.Sprintf("/locks/%d", first), fmt.Sprintf("/locks/%d", 1-first)}
	lock, write := c.locks.RWMutex(paths[1]).Read(), r.IntN(2) == 0
	if write {
		lock = c.locks.RWMutex(paths[1]).Write()
	}
	owner := ""
	if r.IntN(2) == 0 {
		owner = fmt.Sprintf("multi%d", n)
	}
	if g := w.lock(c, r, c.locks.MultiLock(c.locks.RWMutex(paths[0]).Write(), lock), owner); g != nil {
		nodes := g.Nodes()
		w.hold(c, n, r, believer{path: paths[0], node: nodes[0], grant: g, write: true}, believer{path: paths[1], node: nodes[1], grant: g, write: write})
		w.release(c, r, g)
	}
}

// leases has the nodes of the semaphore, one for each of its permits that is held.
const (
	permits = 3
	leases  = "/locks/sem/leases"
)

// useSemaphore holds some of the permits.
func (w *world) useSemaphore(c *clientProcess, n int, r *rand.Rand) {
	owner := ""
	if r.IntN(2) == 0 {
		owner = fmt.Sprintf("sem%d", n)
	}
	most := permits - c.variant%2 // the clients do not agree on the number
	g := w.lock(c, r, c.locks.Semaphore("/locks/sem", most), owner, actors.Permits(1+r.IntN(most)))
	if g == nil {
		return
	}
	var all []believer
	for _, node := range g.Nodes() {
		all = append(all, believer{path: leases, node: node, grant: g})
	}
	w.hold(c, n, r, all...)
	w.release(c, r, g)
}

// useDelayed holds a mutex, which has a lock-delay at some of the clients.
func (w *world) useDelayed(c *clientProcess, n int, r *rand.Rand) {
	const path = "/locks/delayed"
	var options []actors.LockOption
	if delay := c.variant % 3; delay > 0 {
		options = append(options, actors.LockDelay(time.Duration(delay)*time.Second))
	}
	if g := w.lock(c, r, c.locks.Mutex(path, options...), ""); g != nil {
		w.hold(c, n, r, believer{path: path, node: g.Node(), grant: g, write: true})
		w.release(c, r, g)
	}
}

// useLocalQueue writes, and then mostly downgrades: that grant has a node of its own. Some of the
// clients have no local queue.
func (w *world) useLocalQueue(c *clientProcess, n int, r *rand.Rand) {
	const path = "/locks/queue"
	var options []actors.LockOption
	if c.variant%3 < 2 {
		options = append(options, actors.LocalQueue(actors.LocalQueueConfig{}))
	}
	rw, owner := c.locks.RWMutex(path, options...), fmt.Sprintf("queue%d", n)
	write := w.lock(c, r, rw.Write(), owner)
	if write == nil {
		return
	}
	written := believer{path: path, node: write.Node(), grant: write, write: true}
	var read *actors.Grant
	if r.IntN(3) > 0 {
		read = w.lock(c, r, rw.Read(), owner)
	}
	if read == nil {
		w.hold(c, n, r, written)
	} else {
		w.hold(c, n, r, written, believer{path: path, node: read.Node(), grant: read})
		w.release(c, r, read)
	}
	w.release(c, r, write)
}

// lock returns a grant, or nil.
func (w *world) lock(c *clientProcess, r *rand.Rand, lock interface {
	Lock(context.Context, ...actors.Option) (*actors.Grant, error)
}, owner string, options ...actors.Option) *actors.Grant {
	options = append(options, actors.Revocable())
	if owner != "" {
		options = append(options, actors.WithOwner(actors.Owner(owner)))
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
	ctx, cancel := context.WithCancel(context.Background())
	if r.IntN(6) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.Int64N(int64(5*time.Second))))
	}
	defer cancel()
	if r.IntN(6) == 0 {
		time.AfterFunc(time.Duration(r.Int64N(int64(300*time.Millisecond))), cancel)
	}
	g, err := lock.Lock(ctx, options...)
	if err != nil {
		w.checkError(c, err)
		<-time.After(time.Duration(r.Int64N(int64(time.Second))))
		return nil
	}
	w.grants.Add(1)
	return g
}

// hold believes for a time, unless a grant is lost.
func (w *world) hold(c *clientProcess, n int, r *rand.Rand, all ...believer) {
	for i := range all {
		all[i].client, all[i].user = c, n
		w.logf("%s/%d holds %s by %s %v", c.name, n, all[i].path, all[i].node, all[i].grant.Token())
		w.ledger.enter(w, all[i])
	}
	quiet := w.quiet.Load()
	hold := time.Duration(r.Int64N(int64(2 * time.Second)))
	if r.IntN(8) == 0 {
		hold *= 8
	}
	believed := func() (any bool) {
		for _, e := range all {
			any = any || e.grant.Err() == nil
		}
		return any
	}
	for end := time.Now().Add(hold); time.Now().Before(end) && believed(); {
		<-time.After(min(50*time.Millisecond, time.Until(end)))
		for _, e := range all {
			w.ledger.check(w, e)
		}
	}
	for _, e := range all {
		w.ledger.leave(e)
		if quiet && !c.dead.Load() && e.grant.Err() != nil && !errors.Is(e.grant.Err(), actors.ErrHoldExpired) {
			w.Errorf("%s: %v is lost without a fault: %v", c.name, e.grant, e.grant.Err())
		}
		w.logf("%s/%d releases %s %v: %v", c.name, n, e.path, e.grant.Token(), e.grant.Err())
	}
}

func (w *world) release(c *clientProcess, r *rand.Rand, g *actors.Grant) {
	if r.IntN(4) == 0 {
		g.Release()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := g.Unlock(ctx); err != nil {
		w.checkError(c, err)
		if ctx.Err() != nil && !c.dead.Load() {
			w.Errorf("%s: a release has no answer within a minute: %v", c.name, err)
		}
	}
}

// checkError checks that an error is one that the history explains.
func (w *world) checkError(c *clientProcess, err error) {
	for _, want := range []error{actors.ErrNotAcquired, actors.ErrTimedOut, actors.ErrSessionLost, actors.ErrSuspended, actors.ErrHoldExpired, actors.ErrNodeDeleted, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, want) {
			return
		}
	}
	if c.dead.Load() && errors.Is(err, actors.ErrClosed) {
		return
	}
	if errors.Is(err, actors.ErrDeadlock) && strings.Contains(err.Error(), `owner "multi`) {
		return // the members of the owner's last multi-lock may not have let go yet
	}
	w.Errorf("%s: %v", c.name, err)
}

// ledger holds the grants that clients believe in.
type ledger struct {
	mu      sync.Mutex
	held    map[string][]believer // by path
	newest  map[string]actors.Token
	deleted map[string]bool // nodes that an operator deletes: others may hold what they kept at once
}

// believer is a user that believes in a grant. It may have the lock at the path by several.
type believer struct {
	path, node string
	grant      *actors.Grant
	write      bool
	client     *clientProcess
	user       int
}

func (l *ledger) enter(w *world, e believer) {
	l.mu.Lock()
	l.held[e.path] = append(l.held[e.path], e)
	if e.write {
		switch newest := l.newest[e.path]; {
		case e.grant.Token().Compare(newest) > 0:
			l.newest[e.path] = e.grant.Token()
		case l.believes(e): // the word that the node was deleted may come behind the grant
			w.Errorf("%s: token %v of %s comes after %v", e.path, e.grant.Token(), e.client.name, newest)
		}
	}
	l.mu.Unlock()
	l.check(w, e)
}

// believes reports whether e counts.
func (l *ledger) believes(e believer) bool {
	return e.grant.Err() == nil && !e.client.dead.Load() && !l.deleted[e.node]
}

// check checks that no other user believes in a grant that conflicts with e, if e is believed in.
func (l *ledger) check(w *world, e believer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.believes(e) {
		return
	}
	held := 0 // permits
	for _, other := range l.held[e.path] {
		if e.path == leases && l.believes(other) {
			if held++; held > permits {
				w.Errorf("%v: more than %d permits are held: %v", time.Since(w.began), permits, l.held[e.path])
			}
		}
		if other.client == e.client && other.user == e.user || !other.write && !e.write || !l.believes(other) {
			continue
		}
		w.Errorf("%v: %s: %s holds by %v, and %s by %v", time.Since(w.began), e.path, e.client.name, e.grant, other.client.name, other.grant)
	}
}

func (l *ledger) leave(e believer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[e.path] = slices.DeleteFunc(l.held[e.path], func(o believer) bool { return o.grant == e.grant })
}

// of returns what a client believes in.
func (l *ledger) of(c *clientProcess) (all []believer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, held := range l.held {
		for _, e := range held {
			if e.client == c {
				all = append(all, e)
			}
		}
	}
	return all
}

func (l *ledger) noteDeleted(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted[node] = true
}
