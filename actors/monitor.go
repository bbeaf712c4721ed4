package actors

import (
	"context"
	"time"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
)

// Monitor hears of what locks do, for metrics and traces: see Config.Monitor, and package
// actors/telemetry, which is one for OpenTelemetry. Its methods are called while locks work, from
// several goroutines, and must neither block nor call methods of Locks other than Stats and
// Session. Without a Monitor nothing is called and nothing is allocated.
type Monitor interface {
	// Start is called once for each Locks, with its Stats. Close calls the function that it
	// returns.
	Start(stats func() Stats) (stop func())
	// Request is called when a lock has accepted a request. ctx is the context of Acquire or Lock;
	// for the request of an actor it is context.Background. If the result is nil, nothing more is
	// called for the request.
	Request(ctx context.Context, r MonitoredRequest) RequestMonitor
	// Batch is called with the number of creates and deletes of each transaction of contenders'
	// nodes.
	Batch(operations int)
}

// MonitoredRequest is a request as a Monitor hears of it. Its fields are as in OpenRequest.
type MonitoredRequest struct {
	Path, Recipe, Kind, Owner string
}

// RequestMonitor hears of one request: of Refused, or of Granted and then Ended, once each. A
// re-entry is a request of its own.
type RequestMonitor interface {
	// Granted is called before the owner hears of the grant.
	Granted(waited time.Duration, token Token)
	// Refused is called with the error of the future, as Stats counts it.
	Refused(waited time.Duration, err error)
	// Ended is called at the Release, with nil, or when the grant is lost, with the error.
	Ended(held time.Duration, err error)
}

// startMonitor has the configured Monitor hear of all that follows. The result ends that.
func (l *Locks) startMonitor(m Monitor) (stop func()) {
	if m == nil {
		return func() {}
	}
	l.manager.Session.OnBatch(m.Batch)
	ended := m.Start(l.Stats)
	return func() {
		l.manager.Session.OnBatch(nil)
		ended()
	}
}

// monitorOf returns the Monitor for the manager; nil for none.
func monitorOf(m Monitor) manager.Monitor {
	if m == nil {
		return nil
	}
	return func(ctx context.Context, e *manager.Entry, kind, owner string) manager.RequestMonitor {
		if r := m.Request(ctx, MonitoredRequest{e.Path, e.Recipe.Family(), kind, owner}); r != nil {
			return requestMonitor{r}
		}
		return nil
	}
}

// requestMonitor is a RequestMonitor as the manager has it.
type requestMonitor struct{ of RequestMonitor }

// Granted implements manager.RequestMonitor.
func (r requestMonitor) Granted(waited time.Duration, token requests.Token) {
	r.of.Granted(waited, Token(token))
}

// Refused implements manager.RequestMonitor.
func (r requestMonitor) Refused(waited time.Duration, reason messages.Reason) {
	r.of.Refused(waited, reasonError(reason))
}

// Ended implements manager.RequestMonitor.
func (r requestMonitor) Ended(held time.Duration, reason messages.Reason) {
	r.of.Ended(held, reasonError(reason))
}

// reasonError returns the error of this package for a reason; nil for 0.
func reasonError(reason messages.Reason) error {
	switch reason {
	case 0:
		return nil
	case messages.Reason_CANCELLED:
		return ErrCancelled
	}
	return reason
}
