package zkbridge

import (
	"errors"
	"fmt"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// minOutage is how long a request is unanswered before Outage reports it.
const minOutage = 500 * time.Millisecond

// outage is Internals.Outage.
func (b *connection) outage() (since time.Time, why error) {
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

// outageText is Internals.OutageText.
func (b *connection) outageText() string {
	since, why := b.outage()
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

// ExplainBy returns the error of a wait that has ended in an outage, which the text describes; ""
// is none.
func ExplainBy(outage string, err error) error {
	if outage != "" && !errors.Is(err, messages.Reason_DISCONNECTED) {
		return fmt.Errorf("%w: %w: %s", err, messages.Reason_DISCONNECTED, outage)
	}
	return err
}
