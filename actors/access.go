package actors

import (
	"context"
	"log/slog"

	"github.com/actorlock/actorlock/actors/internal/access"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// Package remote makes Locks that live on a lock server, and serves those of this process.
func init() {
	access.Logger = func(cfg access.LocksConfig) *slog.Logger { c := cfg.(Config); return c.logger() }
	access.Check = func(cfg access.LocksConfig) error { c := cfg.(Config); return c.check() }
	access.NewLocks = func(system *host.System, session manager.AnySession, server manager.Remote, cfg access.LocksConfig, end func() error) access.Locks {
		c := cfg.(Config)
		l := newLocks(manager.NewRemote(system, session, server, c.settings()), c)
		l.manager.SessionEndsWithClose()
		l.closeOwned = end
		return l
	}
	access.Answer = func(ctx context.Context, of access.Locks, q *messages.Question, by *access.Asker, next func(value []byte) (more bool)) error {
		return of.(*Locks).answer(ctx, q, by, next)
	}
	access.PathsOf = pathsOf
	access.Manager = func(l access.Locks) *manager.Manager { return l.(*Locks).manager }
}
