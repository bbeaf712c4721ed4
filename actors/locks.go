package actors

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/actorlock/actorlock/actors/internal/access"
	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
)

// Locks makes the handles of locks that live on one ZooKeeper session. Its methods may be called
// from any goroutine. In a process without ZooKeeper the session is that of a lock server, which the
// Locks ask what they would ask ZooKeeper. Such Locks refuse Multi, RaiseGeneration and Custom, with
// ErrInvalid.
type Locks struct {
	managed // lets package remote find the manager
	manager *manager.Manager

	stopMonitor func()
	closing     sync.Once
	owned       io.Closer // the session, if Connect or remote.Dial has opened it; nil otherwise
	closeFailed error
}

// managed has an unexported name, so that programs do not see it in Locks.
type managed = access.Managed

// Session returns the present state of the ZooKeeper session that the locks live on.
func (l *Locks) Session() zkbridge.Session { return l.manager.Session.Session() }

// Sessions returns a channel that has what Session returns at once, and then again whenever
// State changes:
//
//	for s := range locks.Sessions(ctx) { ready.Store(s.State == messages.SessionState_CONNECTED) }
//
// A slow reader finds the newest state, not those in between, and delays no other part of the
// program. A greater Epoch shows that there was a loss. The channel is closed when ctx ends or
// Locks is closed; it needs no goroutine. Holders do not need it: their grants notify them. If
// ctx is nil the channel is closed, and Config.Logger gets an error.
func (l *Locks) Sessions(ctx context.Context) <-chan zkbridge.Session {
	if ctx == nil {
		l.manager.Log.Error("Sessions returns a closed channel", "error", check.ErrNilContext, "do", "pass a context")
		none := make(chan zkbridge.Session)
		close(none)
		return none
	}
	ctx, cancel := context.WithCancel(ctx)
	unwatch := context.AfterFunc(l.manager.Ended(), cancel)
	context.AfterFunc(ctx, func() { unwatch() })
	return l.manager.Session.Sessions(ctx)
}

// SetServers replaces the servers of Connect: those of the same ensemble after its members have
// changed, with the same chroot. A connection to a server that is not in the list ends: the session
// is SUSPENDED until it goes on over another one, with all grants. SetServers does not block. Its
// error is ErrInvalid, and names what is not acceptable in the list; then nothing changes.
func (l *Locks) SetServers(servers string) error {
	if err := l.manager.Session.SetServers(servers); err != nil {
		return check.Invalid(err.Error())
	}
	return nil
}

// Close ends all requests and grants with ErrClosed and, if Connect opened it, the ZooKeeper
// session: first the contexts of the grants end, and then the session, with no margin between.
// Another process may hold the locks right after, so the work that they protect must have ended
// before Close is called. Close blocks until ZooKeeper has confirmed the end, or could not be
// reached for about ConnectTimeout: then it returns an error, and the nodes stay until the
// session expires. It may be called more than once. An actor must not call it.
//
// The session of Locks that New made goes on. Close then blocks until ZooKeeper has deleted
// their nodes, for the session's timeout at most; the error names the nodes that may remain.
func (l *Locks) Close() error {
	l.closing.Do(func() {
		l.closeFailed = l.manager.Close()
		if l.owned != nil {
			l.closeFailed = cmp.Or(l.closeFailed, l.owned.Close())
			l.manager.System().Close()
		}
		l.stopMonitor()
		l.manager.End()
	})
	return l.closeFailed
}

// handle returns a handle for a kind. Problems with the path or the options show at its first
// request.
func (l *Locks) handle(path string, r *recipe, kind queue.Kind, options []LockOption) handle {
	with, err := withOptions(r, options)
	return handle{manager: l.manager, path: path, recipe: with, kind: kind, problem: err}
}

// at returns what a question about a path needs.
func (l *Locks) at(path string) *inspection.Target {
	return &inspection.Target{Manager: l.manager, Path: path}
}

// needsZooKeeper returns the error of a call that a lock server does not answer; nil in a process
// with ZooKeeper.
func (l *Locks) needsZooKeeper(call, instead string) error {
	if l.manager.Remote == nil {
		return nil
	}
	return check.Invalid(fmt.Sprintf("%s needs a process with a ZooKeeper session of its own: %s", call, instead))
}
