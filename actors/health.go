package actors

import (
	"context"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/inspection"
)

// Health returns nil if locks can be acquired: there is a session, ZooKeeper answers, and the
// generation of tokens can be read and is high enough, without which no lock is granted. Otherwise
// the error says what is wrong, and since when ZooKeeper has not answered: errors.Is finds
// ErrSuspended, ErrSessionLost, ErrNoAuth, ErrInvalid (of the generation's node), ErrClosed, or the
// cause of ctx. It asks ZooKeeper, by a write that changes nothing and a read, and blocks until
// ZooKeeper answers, ctx ends or the connection is lost: for a server that is silent, ctx needs a
// deadline. A lock that another client holds is no error, nor is Drain. Stats has the state of the
// session without asking.
func (l *Locks) Health(ctx context.Context) error {
	if _, err := inspection.CheckHealth.One(ctx, l.at(""), struct{}{}); err != nil {
		return fmt.Errorf("locks are not available: %w", inspection.Summarize(l.manager.Session, err))
	}
	return nil
}
