package zkbridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
)

// minOutage is how long a request is unanswered before Outage reports it.
const minOutage = 500 * time.Millisecond

// Outage returns since when ZooKeeper has not answered, and why: since the connection was lost, or,
// while the bridge is CONNECTED, since the oldest request was sent that has had no answer for half
// a second or longer. why is nil if neither is so, and once the bridge is closed. It never blocks.
func (b *Bridge) Outage() (since time.Time, why error) {
	now := b.state.Load()
	switch {
	case now.State == messages.SessionState_ENDED:
		return time.Time{}, nil
	case now.outageSince.IsZero():
		return now.conn.UnansweredSince(minOutage)
	}
	why = errors.New(now.outageReason)
	if last := b.lastConnectError.Load(); last != nil && !last.at.Before(now.outageSince) {
		why = fmt.Errorf("%s; the last attempt failed: %w", now.outageReason, last.err)
	}
	return now.outageSince, why
}

// OutageText returns Outage as a text for people, "" if ZooKeeper answers. It never blocks.
func (b *Bridge) OutageText() string {
	since, why := b.Outage()
	if why == nil {
		return ""
	}
	return DescribeOutage("ZooKeeper", since, why)
}

// DescribeOutage returns the text for people about an outage of a server since a time. From a second
// on the text has the length of the outage, too. At its beginning an outage fails the calls that are
// open, whose errors are shown for as long as it lasts.
func DescribeOutage(server string, since time.Time, why error) string {
	text := fmt.Sprintf("no answer from %s since %s", server, since.Format("15:04:05.000"))
	if d := time.Since(since); d >= time.Second {
		text += fmt.Sprintf(" (for %v)", d.Round(time.Millisecond))
	}
	return fmt.Sprintf("%s: %v", text, why)
}

// Explain returns the error of a wait that has ended. If ZooKeeper does not answer, the error is
// also DISCONNECTED, and its text says since when and why. It never blocks.
func (b *Bridge) Explain(err error) error { return ExplainBy(b.OutageText(), err) }

// ExplainBy returns the error of a wait that has ended in an outage, which the text describes; ""
// is none.
func ExplainBy(outage string, err error) error {
	if outage != "" && !errors.Is(err, messages.Reason_DISCONNECTED) {
		return fmt.Errorf("%w: %w: %s", err, messages.Reason_DISCONNECTED, outage)
	}
	return err
}

// FailFast returns the same bridge, whose blocking calls do not wait for a connection if on is
// true: a call fails when the session becomes SUSPENDED, and at once while it is. The error is
// [messages.Reason_DISCONNECTED], or OUTCOME_UNKNOWN if a transaction was sent. The error of a call
// that ends with ctx or with the session then has what Explain adds. The calls of the bridge that
// Open returns wait. FailFast never blocks.
func (b *Bridge) FailFast(on bool) *Bridge { return &Bridge{b.connection, on} }

// explained returns the error of a call, by Explain if the call may have ended because ZooKeeper
// does not answer.
func (b *Bridge) explained(ctx context.Context, err error) error {
	if err == nil || !b.failFast {
		return err
	}
	if ctx.Err() != nil || errors.Is(err, messages.Reason_SESSION_LOST) || errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) {
		return b.Explain(err)
	}
	return err
}

// failFastCalls fails the calls that do not wait for a connection.
func (a *bridgeActor) failFastCalls() {
	for _, r := range a.epoch.Requests() {
		if w, is := r.(requests.Waited); is && w.Called().FailFast {
			a.epoch.Fail(r, messages.Reason_DISCONNECTED, "%s", a.bridge.OutageText())
		}
	}
}
