package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// Bridge is a [zkbridge.Bridge] whose blocking calls end with DISCONNECTED when the connection
// to ZooKeeper is lost, rather than wait for the next connection.
type Bridge struct{ *zkbridge.Bridge }

// OutageText returns a text for people: since when ZooKeeper does not answer, and why. It returns
// "" if ZooKeeper answers.
func (b Bridge) OutageText() string {
	since, why := b.Outage()
	if why == nil {
		return ""
	}
	return fmt.Sprintf("no answer from ZooKeeper since %s (for %v): %v",
		since.Format("15:04:05.000"), time.Since(since).Round(time.Millisecond), why)
}

func (b Bridge) disconnectedError() error {
	return fmt.Errorf("%w: %s", messages.Reason_DISCONNECTED, b.OutageText())
}

// Explain returns the error of a wait that has ended. If ZooKeeper does not answer, the error
// is also DISCONNECTED, and its text says since when and why.
func (b Bridge) Explain(err error) error {
	if outage := b.OutageText(); outage != "" && !errors.Is(err, messages.Reason_DISCONNECTED) {
		return fmt.Errorf("%w: %w: %s", err, messages.Reason_DISCONNECTED, outage)
	}
	return err
}

// Summarize is Explain with the text of the outage alone, which has the cause once.
func (b Bridge) Summarize(err error) error {
	err = b.Explain(err)
	switch outage := b.OutageText(); {
	case outage == "":
		return err
	case errors.Is(err, messages.Reason_SESSION_LOST):
		return &summary{err, messages.Reason_SESSION_LOST.Error() + ": " + outage}
	default:
		return &summary{err, outage}
	}
}

// summary is an error with another text.
type summary struct {
	error
	text string
}

func (s *summary) Error() string { return s.text }
func (s *summary) Unwrap() error { return s.error }

// guard calls f if there is a connection. It ends the context of f when the connection is lost.
func guard[T any](ctx context.Context, b Bridge, f func(context.Context) (T, error)) (T, error) {
	var none T
	switch {
	case ctx == nil:
		return none, check.ErrNilContext
	case b.Session().State == messages.SessionState_SUSPENDED: // f itself fails when the session is lost
		return none, b.disconnectedError()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c := &guardedCall{b, cancel}
	b.Ref().SendSubscribe(&messages.Subscribe{}, c)
	defer func() {
		b.Ref().SendUnsubscribe(&messages.Unsubscribe{}, c)
		cancel(nil)
	}()
	value, err := f(ctx)
	if err != nil && (ctx.Err() != nil || errors.Is(err, messages.Reason_SESSION_LOST) || errors.Is(err, messages.Reason_OUTCOME_UNKNOWN)) {
		err = b.Explain(err)
	}
	return value, err
}

// guardedCall is a call that waits for ZooKeeper, as a subscriber of the bridge.
type guardedCall struct {
	bridge Bridge
	cancel context.CancelCauseFunc
}

// Tell implements ask.Recipient.
func (c *guardedCall) Tell(msg any) {
	if s, ok := msg.(*messages.SessionChanged); ok && s.State == messages.SessionState_SUSPENDED {
		c.cancel(c.bridge.disconnectedError())
	}
}

// Multi is zkbridge.Bridge.Multi, guarded.
func (b Bridge) Multi(ctx context.Context, ops ...any) ([]zkbridge.Result, error) {
	return guard(ctx, b, func(ctx context.Context) ([]zkbridge.Result, error) { return b.Bridge.Multi(ctx, ops...) })
}

// MultiIn is zkbridge.Bridge.MultiIn, guarded.
func (b Bridge) MultiIn(ctx context.Context, epoch uint64, ops ...any) ([]zkbridge.Result, error) {
	return guard(ctx, b, func(ctx context.Context) ([]zkbridge.Result, error) { return b.Bridge.MultiIn(ctx, epoch, ops...) })
}

// GetNode is zkbridge.Bridge.GetNode, guarded.
func (b Bridge) GetNode(ctx context.Context, path string) (zkbridge.NodeView, error) {
	return guard(ctx, b, func(ctx context.Context) (zkbridge.NodeView, error) { return b.Bridge.GetNode(ctx, path) })
}

// GetData is zkbridge.Bridge.GetData, guarded.
func (b Bridge) GetData(ctx context.Context, path string) (zkbridge.NodeView, error) {
	return guard(ctx, b, func(ctx context.Context) (zkbridge.NodeView, error) { return b.Bridge.GetData(ctx, path) })
}

// Children is zkbridge.Bridge.Children, guarded.
func (b Bridge) Children(ctx context.Context, directory string, wanted func(name string) bool) ([]zkbridge.Child, error) {
	return guard(ctx, b, func(ctx context.Context) ([]zkbridge.Child, error) { return b.Bridge.Children(ctx, directory, wanted) })
}

// Transact has the bridge perform all of the operations or none, guarded.
func (b Bridge) Transact(ctx context.Context, msg *messages.Transact) (*messages.Transacted, error) {
	return guard(ctx, b, func(ctx context.Context) (*messages.Transacted, error) { return b.Ref().Transact(msg).Wait(ctx) })
}

// PeekData is zkbridge.Bridge.PeekData, guarded.
func (b Bridge) PeekData(ctx context.Context, path string) (zkbridge.NodeView, error) {
	return guard(ctx, b, func(ctx context.Context) (zkbridge.NodeView, error) { return b.Bridge.PeekData(ctx, path) })
}

// WatchChildren is zkbridge.Bridge.WatchChildren, guarded.
func (b Bridge) WatchChildren(ctx context.Context, directory string, wanted func(name string) bool, to ask.Recipient) (children []zkbridge.Child, czxid int64, err error) {
	children, err = guard(ctx, b, func(ctx context.Context) (all []zkbridge.Child, err error) {
		all, czxid, err = b.Bridge.WatchChildren(ctx, directory, wanted, to)
		return all, err
	})
	return children, czxid, err
}
