// Package access gives package remote what an actors.Locks hides from programs. Package actors sets
// the variables when it is initialized. Locks is *actors.Locks here, and LocksConfig actors.Config.
package access

import (
	"context"
	"log/slog"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

type (
	// Locks is an *actors.Locks.
	Locks any
	// LocksConfig is an actors.Config.
	LocksConfig any
)

var (
	// Logger returns the log of Locks that have the configuration.
	Logger func(LocksConfig) *slog.Logger
	// Check returns what is wrong with the configuration.
	Check func(LocksConfig) error
	// NewLocks returns Locks that live on a session with a lock server. Their Close calls end, after
	// it has closed the locks.
	NewLocks func(system *host.System, session manager.AnySession, server manager.Remote, cfg LocksConfig, end func() error) Locks
	// Manager returns the manager of Locks.
	Manager func(Locks) *manager.Manager
	// Answer answers a question of a client, for Locks with ZooKeeper. It calls next for each value,
	// and blocks until next returns false, ctx ends, or there is an error: then the question is
	// unacceptable.
	Answer func(ctx context.Context, of Locks, q *messages.Question, by *Asker, next func(value []byte) (more bool)) error
	// PathsOf returns the paths that a question touches, of locks, their directories and counts, and
	// reports whether it has something changed there. The error is that the question or a path is
	// unacceptable.
	PathsOf func(q *messages.Question) (paths []string, changes bool, err error)
)

// Asker is a client of a lock server that asks a question. Any goroutine may call its functions.
type Asker struct {
	// Owns reports whether a request is the client's.
	Owns func(from ask.Recipient) bool
	// MayInspect returns why the client must not hear of what is at a path, or nil. It is asked for
	// paths that only the answer shows; the others are those of PathsOf.
	MayInspect func(path string) error
}
