package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// Grant proves that its owner holds a lock, until Release or loss. Its methods may be called
// from any goroutine. A Grant that is dropped without Release holds the lock until the session
// ends, and Config.Logger gets an error.
type Grant struct{ acquisition *acquisition }

// ErrReleased is the Err of a Grant that was released.
var ErrReleased = errors.New("grant was released")

// Token returns the grant's fencing token. Pass it to the resource that the lock protects.
func (g *Grant) Token() Token {
	return Token(lock.TokenOf(g.acquisition.granted, g.acquisition.step))
}

// Path returns the lock's path.
func (g *Grant) Path() string { return g.acquisition.handle.path }

// Node returns the full path of the holder's node. A grant of several nodes has one here that
// the token's transaction created.
func (g *Grant) Node() string { return lock.NodeOf(g.acquisition.granted) }

// Nodes returns the full paths of all nodes of the grant: several nodes for several permits of a
// semaphore. The grant is lost as soon as one of them is gone.
func (g *Grant) Nodes() []string { return lock.NodesOf(g.acquisition.granted) }

// Session returns the id of the ZooKeeper session that holds the lock.
func (g *Grant) Session() int64 { return g.acquisition.granted.SessionId }

// String returns the grant for people: path, node, token and session, and why it is over, if it is.
func (g *Grant) String() string {
	text := fmt.Sprintf("grant of %s by %s, token %v, session %s", g.Path(), g.Node(), g.Token(), messages.FormatSession(g.Session()))
	if err := g.Err(); err != nil {
		text += ": " + err.Error()
	}
	return text
}

// LogValue implements slog.LogValuer.
func (g *Grant) LogValue() slog.Value {
	all := []slog.Attr{slog.String("path", g.Path()), slog.String("node", g.Node()), slog.Any("token", g.Token()),
		slog.String("session", messages.FormatSession(g.Session()))}
	if owner := g.acquisition.msg.Owner; owner != "" {
		all = append(all, slog.String("owner", owner))
	}
	if err := g.Err(); err != nil {
		all = append(all, slog.Any("error", err))
	}
	return slog.GroupValue(all...)
}

// Done returns a channel that is closed when the grant is over: lost or released. Err says why by
// then, and all contexts of Context have ended, with those that derive from them.
func (g *Grant) Done() <-chan struct{} {
	a := g.acquisition
	a.checkEnded()
	a.mu.Lock()
	defer a.mu.Unlock()
	return makeChannel(&a.notificationsLocked().done, a.announced)
}

// makeChannel returns the channel at c. It makes a missing one, closed if it is to be.
func makeChannel(c *chan struct{}, closed bool) <-chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
		if closed {
			close(*c)
		}
	}
	return *c
}

// Revoked returns a channel that is closed when another client asks for the lock: see Locks.Revoke.
// Curator's Revoker asks in the same way. The holder should finish its work and release; until then
// it holds. HoldAtMost closes the channel, too. It may take two seconds from the grant until the
// channel is closed, unless the request was made with Revocable.
func (g *Grant) Revoked() <-chan struct{} {
	a := g.acquisition
	a.mu.Lock()
	defer a.mu.Unlock()
	return makeChannel(&a.notificationsLocked().revoked, a.revokeRequested)
}

// Err returns nil while the grant holds, to the knowledge of this process. Afterwards it returns
// ErrReleased, or why the grant was lost: errors.Is finds ErrSessionLost, ErrNodeDeleted,
// ErrHoldExpired, ErrClosed or ErrInternal. It looks at the clock, so that a process that was
// paused for too long learns of the loss at once, before any timer has fired. It cannot know of a
// pause that comes right after the call: see Guard and Token.
func (g *Grant) Err() error { return g.acquisition.checkEnded() }

// Context returns a child of parent that ends, at the latest, when the grant is over: before Done
// is closed. Its cause is then the Err of the grant, or ErrSuspended (see Config.StopOnSuspended).
// Its own Err looks at the clock, as Grant.Err does. Use it for the work that the lock protects.
// Each call costs memory until the grant is over or parent ends: call it once for a grant, not once
// for a step of the work.
//
// If parent is nil, the context has ended with ErrInvalid as its cause.
func (g *Grant) Context(parent context.Context) context.Context {
	if parent == nil {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(check.ErrNilContext)
		return ctx
	}
	ctx, cancel := context.WithCancelCause(parent)
	a := g.acquisition
	a.checkEnded()
	a.mu.Lock()
	ended := a.ended
	if ended == nil && a.handle.manager.Suspended() {
		ended = ErrSuspended
	}
	if ended != nil {
		a.mu.Unlock()
		cancel(ended)
		return workContext{ctx, g}
	}
	n := a.notificationsLocked()
	if n.contexts == nil {
		n.contexts = map[context.Context]context.CancelCauseFunc{}
	}
	n.contexts[ctx] = cancel
	a.mu.Unlock()
	context.AfterFunc(ctx, func() {
		a.mu.Lock()
		delete(a.notifications.contexts, ctx)
		a.mu.Unlock()
	})
	return workContext{ctx, g}
}

// workContext is the context that users get. While it is in use, the grant is not taken for
// dropped. The acquisition, which outlives the grant, does not refer to it.
type workContext struct {
	context.Context
	grant *Grant
}

// Err implements context.Context.
func (w workContext) Err() error {
	w.grant.acquisition.checkEnded()
	return w.Context.Err()
}

// Release ends the grant and never blocks. The next contender of this process may hold the
// lock at once; those of other processes hold it when ZooKeeper has deleted the node, and the
// future completes then. It works however late: without a connection to ZooKeeper, the node is
// deleted as soon as possible. A lock that its owner has entered several times is given back
// with the last Release.
//
// The future's error is ErrNotHeld if the grant was released before, or why it was lost. With
// ErrSessionLost the node goes when ZooKeeper notices the end of the session. With ErrNoAuth and
// ErrUnavailable ZooKeeper refuses to delete the node: the deletion is tried again while the
// session lives, and other contenders wait for it.
func (g *Grant) Release() *Future[struct{}] {
	a := g.acquisition
	a.checkEnded()
	p := ask.NewPromise[struct{}](nil)
	a.mu.Lock()
	ended, again := a.ended, a.release != nil
	if !again {
		a.release = p
	}
	a.mu.Unlock()
	switch {
	case again:
		p.Complete(struct{}{}, &messages.Refused{Reason: messages.Reason_NOT_HELD, Detail: a.handle.path + " was released before"})
	case ended != nil:
		p.Complete(struct{}{}, ended)
		a.sendRelease() // the actor may remember the loss, to refuse a re-entry
	default:
		a.end(ErrReleased)
		a.sendRelease()
	}
	runtime.KeepAlive(g) // otherwise it may be taken for dropped before a.release is set
	return p.Future()
}

// Unlock is Release that blocks until ZooKeeper has acknowledged it or ctx ends. The release
// goes on after ctx has ended, and also if ctx is nil, which is ErrInvalid. The error is then the
// cause of ctx, and also ErrSuspended if ZooKeeper did not answer. A program that stops by the end
// of its context waits with context.WithoutCancel(ctx): until the answer, or the end of the session.
func (g *Grant) Unlock(ctx context.Context) error {
	released := g.Release()
	if ctx == nil {
		return check.ErrNilContext
	}
	_, err := released.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		h := g.acquisition.handle
		return h.manager.Session.Explain(fmt.Errorf("unlock %s, which goes on without an answer yet: %w", h.path, err))
	}
	return err
}
