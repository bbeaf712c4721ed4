package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// guardedBridge is the bridge, whose calls that block end when the connection to ZooKeeper is
// lost, rather than wait for the next one.
type guardedBridge struct{ *zkbridge.Bridge }

// isLost reports whether there is no connection. It is false once the bridge is closed.
func (c guardedBridge) isLost() bool { return lost(c.Session().State) }

func lost(s messages.SessionState) bool {
	return s == messages.SessionState_SUSPENDED || s == messages.SessionState_LOST
}

// outage says for people since when ZooKeeper does not answer, and why; it is empty if
// ZooKeeper answers.
func (c guardedBridge) outage() string {
	since, why := c.Outage()
	if why == nil {
		return ""
	}
	return fmt.Sprintf("no answer from ZooKeeper since %s (for %v): %v",
		since.Format("15:04:05.000"), time.Since(since).Round(time.Millisecond), why)
}

// lostError is what ends a call because there is no connection.
func (c guardedBridge) lostError() error { return fmt.Errorf("%w: %s", ErrSuspended, c.outage()) }

// explain adds to the error of a wait that ZooKeeper does not answer, if that is so:
// errors.Is finds ErrSuspended then.
func (c guardedBridge) explain(err error) error {
	if outage := c.outage(); outage != "" && !errors.Is(err, ErrSuspended) {
		return fmt.Errorf("%w: %w: %s", err, ErrSuspended, outage)
	}
	return err
}

// guard calls f, unless there is no connection. It ends f's context when the connection is
// lost.
func guard[T any](ctx context.Context, c guardedBridge, f func(context.Context) (T, error)) (T, error) {
	var none T
	switch {
	case ctx == nil:
		return none, errNilContext
	case c.Session().State == messages.SessionState_SUSPENDED: // LOST is an error of f
		return none, c.lostError()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &guardedCall{c, cancel}
	c.Ref().SendSubscribe(&messages.Subscribe{}, w)
	defer func() {
		c.Ref().SendUnsubscribe(&messages.Unsubscribe{}, w)
		cancel(nil)
	}()
	value, err := f(ctx)
	if err != nil && (ctx.Err() != nil || errors.Is(err, ErrSessionLost) || errors.Is(err, messages.Reason_OUTCOME_UNKNOWN)) {
		err = c.explain(err)
	}
	return value, err
}

// guardedCall is a call that waits for ZooKeeper, as a subscriber of the bridge.
type guardedCall struct {
	connection guardedBridge
	cancel     context.CancelCauseFunc
}

// Tell implements ask.Recipient.
func (w *guardedCall) Tell(msg any) {
	if s, ok := msg.(*messages.SessionChanged); ok && s.State == messages.SessionState_SUSPENDED {
		w.cancel(w.connection.lostError())
	}
}

// Multi is the bridge's, guarded.
func (c guardedBridge) Multi(ctx context.Context, ops ...any) ([]zkbridge.Result, error) {
	return guard(ctx, c, func(ctx context.Context) ([]zkbridge.Result, error) { return c.Bridge.Multi(ctx, ops...) })
}

// MultiIn is the bridge's, guarded.
func (c guardedBridge) MultiIn(ctx context.Context, epoch uint64, ops ...any) ([]zkbridge.Result, error) {
	return guard(ctx, c, func(ctx context.Context) ([]zkbridge.Result, error) { return c.Bridge.MultiIn(ctx, epoch, ops...) })
}

// Look is the bridge's, guarded.
func (c guardedBridge) Look(ctx context.Context, path string) (zkbridge.View, error) {
	return guard(ctx, c, func(ctx context.Context) (zkbridge.View, error) { return c.Bridge.Look(ctx, path) })
}

// Read is the bridge's, guarded.
func (c guardedBridge) Read(ctx context.Context, path string) (zkbridge.View, error) {
	return guard(ctx, c, func(ctx context.Context) (zkbridge.View, error) { return c.Bridge.Read(ctx, path) })
}

// Children is the bridge's, guarded.
func (c guardedBridge) Children(ctx context.Context, directory string) ([]zkbridge.Child, error) {
	return guard(ctx, c, func(ctx context.Context) ([]zkbridge.Child, error) { return c.Bridge.Children(ctx, directory) })
}

// connectionLost is what all actors are told when the connection is lost.
type connectionLost struct{}

// Tell hears of the session, as the manager is a subscriber of the bridge.
func (m *manager) Tell(msg any) {
	s, ok := msg.(*messages.SessionChanged)
	if !ok || !lost(s.State) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.activeEntries() {
		r.self.Tell(connectionLost{})
	}
}

// refuseTries ends the requests that were made with Try and wait.
func (d *requestTable) refuseTries() {
	for _, r := range d.requests.All() {
		if r.try && !r.fromLockActor && !r.granted {
			d.refuseTry(r)
		}
	}
}

// refuseTry ends a request that waits for ZooKeeper when the desk's actor comes to it.
func (d *requestTable) refuseTry(r *request) {
	r.cancelReason = messages.Reason_DISCONNECTED
	d.withdraw(r, true)
}
