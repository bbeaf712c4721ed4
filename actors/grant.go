package actors

import (
	"context"
	"errors"
	"runtime"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// Grant proves that its owner holds a lock, until Release or loss. Its methods may be
// called from any goroutine. A Grant that is dropped without Release holds the lock
// until the session ends; the logger hears of it.
type Grant struct{ acquisition *acquisition }

// ErrReleased is what a Grant ends with when it is released.
var ErrReleased = errors.New("grant was released")

// watchDropped has it noticed that the grant is dropped.
func (g *Grant) watchDropped() { runtime.AddCleanup(g, (*acquisition).dropped, g.acquisition) }

func (c *acquisition) dropped() {
	c.mu.Lock()
	held, released := c.ended == nil, c.release != nil || errors.Is(c.ended, ErrReleased)
	c.droppedHeld = held
	c.mu.Unlock()
	switch {
	case held:
		c.handle.manager.log.Error("grant was dropped without Release; the lock is held until the session ends",
			"path", c.handle.path, "owner", c.msg.Owner)
	case !released:
		c.sendRelease() // lost: nobody can release it any more, and it keeps its owner from the lock
	}
}

// Token is the grant's fencing token. Hand it to whatever the lock protects.
func (g *Grant) Token() Token {
	granted := g.acquisition.granted
	return Token{granted.Generation, granted.Czxid, g.acquisition.step}
}

// Path is the lock's path.
func (g *Grant) Path() string { return g.acquisition.handle.path }

// Node is the full path of the holder's node; if there are several, of one that the token's
// transaction made.
func (g *Grant) Node() string { return nodePath(g.acquisition.granted) }

// Nodes are the full paths of all of the holder's nodes: several for permits of a
// semaphore. The grant is lost as soon as one of them is gone.
func (g *Grant) Nodes() []string {
	if len(g.acquisition.granted.Parts) == 0 {
		return []string{g.Node()}
	}
	var nodes []string
	for _, part := range g.acquisition.granted.Parts {
		nodes = append(nodes, nodePath(part))
	}
	return nodes
}

func nodePath(granted *messages.Granted) string { return granted.Path + "/" + granted.Node }

// Session is the ZooKeeper session that holds the lock.
func (g *Grant) Session() int64 { return g.acquisition.granted.SessionId }

// Done is closed when the grant is over: lost or released.
func (g *Grant) Done() <-chan struct{} {
	c := g.acquisition
	c.checkEnded()
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.notificationsLocked()
	if told.done == nil {
		told.done = make(chan struct{})
		if c.ended != nil {
			close(told.done)
		}
	}
	return told.done
}

// Revoked is closed when somebody asks for the lock: see Locks.Revoke. The holder should
// come to an end and release; until then it holds. Curator's Revoker asks in the same
// way. It may take two seconds from the grant to hear of it, unless the request was
// made with Revocable.
func (g *Grant) Revoked() <-chan struct{} {
	c := g.acquisition
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.notificationsLocked()
	if told.revoked == nil {
		told.revoked = make(chan struct{})
		if c.revokeRequested {
			close(told.revoked)
		}
	}
	return told.revoked
}

// Err is nil while the grant holds, as far as this process can know. Then it is
// ErrReleased, or why the grant was lost: errors.Is finds ErrSessionLost,
// ErrNodeDeleted, ErrClosed or ErrInternal. It looks at the clock, so that a process
// that was paused for too long is told at once, before any timer has fired. Nothing
// tells of a pause that comes right after: see Guard and Token.
func (g *Grant) Err() error { return g.acquisition.checkEnded() }

// Context is parent, ended at the latest when the grant is over; its cause is then
// what Err gives, or ErrSuspended (see Config.StopOnSuspended). Its own Err looks at the
// clock as that of the grant does. Each call costs memory until the grant is over or
// parent ends: make one for a grant, not for a step. Use it for the work that the lock
// protects.
//
// If parent is nil the context has ended, with ErrInvalid as its cause.
func (g *Grant) Context(parent context.Context) context.Context {
	if parent == nil {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errNilContext)
		return ctx
	}
	ctx, cancel := context.WithCancelCause(parent)
	c, gc := g.acquisition, &grantContext{cancel}
	c.checkEnded()
	c.mu.Lock()
	ended := c.ended
	if ended == nil && c.handle.manager.suspended() {
		ended = ErrSuspended
	}
	if ended == nil {
		told := c.notificationsLocked()
		if told.contexts == nil {
			told.contexts = map[*grantContext]struct{}{}
		}
		told.contexts[gc] = struct{}{}
	}
	c.mu.Unlock()
	if ended != nil {
		cancel(ended)
	} else {
		context.AfterFunc(ctx, func() {
			c.mu.Lock()
			delete(c.notifications.contexts, gc)
			c.mu.Unlock()
		})
	}
	return workContext{ctx, g}
}

// workContext is the context that users see. It keeps the grant from being taken for dropped
// while it is used, and stands outside of what the claim refers to, which outlives the
// grant.
type workContext struct {
	context.Context
	grant *Grant
}

// Err implements context.Context.
func (w workContext) Err() error {
	w.grant.acquisition.checkEnded()
	return w.Context.Err()
}

// Release gives the grant back and never blocks. The next contender of this process
// may hold the lock at once, others when ZooKeeper has removed the node; the future
// completes then. Its error is ErrNotHeld if the grant was released before, or why it
// was lost; ErrSessionLost tells that the node goes with the session, when ZooKeeper
// notices. After ErrNoAuth and ErrUnavailable, by which ZooKeeper does not remove the node,
// its removal is tried again while the session lives, and others wait for it. Release works
// however late: also with ZooKeeper away, the node is removed as soon as possible.
//
// A lock that was entered several times by its owner is given up with the last Release.
func (g *Grant) Release() *Future[struct{}] {
	c := g.acquisition
	c.checkEnded()
	p := ask.NewPromise[struct{}](nil)
	c.mu.Lock()
	ended, again := c.ended, c.release != nil
	if !again {
		c.release = p
	}
	c.mu.Unlock()
	switch {
	case again:
		p.Complete(struct{}{}, &messages.Refused{Reason: messages.Reason_NOT_HELD, Detail: c.handle.path + " was released before"})
	case ended != nil:
		p.Complete(struct{}{}, ended)
		c.sendRelease() // the actor may remember the loss, to refuse a re-entry
	default:
		c.end(ErrReleased)
		c.sendRelease()
	}
	runtime.KeepAlive(g) // else it may be taken for dropped up to the moment when c.release is set
	return p.Future()
}

// Unlock is Release that blocks until ZooKeeper has acknowledged it or ctx ends. The
// release goes on in the latter case, and if ctx is nil, which is ErrInvalid. The error is
// also ErrSuspended if ZooKeeper did not answer when ctx ended.
func (g *Grant) Unlock(ctx context.Context) error {
	released := g.Release()
	if ctx == nil {
		return errNilContext
	}
	_, err := released.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		return g.acquisition.handle.manager.zk.explain(err)
	}
	return err
}
