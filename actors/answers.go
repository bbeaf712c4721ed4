package actors

import (
	"context"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// RequestID implements lock.Acquisition.
func (a *acquisition) RequestID() *requests.ID { return &a.id }

// Owner implements lock.Acquisition.
func (a *acquisition) Owner() string { return a.msg.Owner }

// Context implements lock.Acquisition.
func (a *acquisition) Context() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	ctx := a.notifications.ctx
	a.notifications.ctx = nil
	return ctx
}

// Refused implements messages.OwnerHandler. It answers the Release if the user has sent one,
// else the Acquire.
func (a *acquisition) Refused(_ struct{}, refused *messages.Refused) {
	a.mu.Lock()
	release, e := a.release, a.entry
	a.mu.Unlock()
	switch {
	case release != nil:
		release.Complete(struct{}{}, refused)
	case refused.Reason == messages.Reason_STOPPED && a.promise.Load() != nil: // the actor was idle
		a.handle.forget(e)
		a.send()
	default:
		a.complete(nil, refused)
	}
}

// Released implements messages.OwnerHandler.
func (a *acquisition) Released(struct{}, *messages.Released) {
	a.mu.Lock()
	release := a.release
	a.mu.Unlock()
	if release != nil {
		release.Complete(struct{}{}, nil)
	}
}

func (a *acquisition) sendRelease() { a.entry.Self.RunInlineIfIdle((*releaseEnvelope)(a)) }

// releaseEnvelope is an acquisition as the Release that it sends, with itself as the sender.
type releaseEnvelope acquisition

// Unwrap implements ask.Envelope.
func (e *releaseEnvelope) Unwrap() (ask.Recipient, any) { return (*acquisition)(e), plainRelease }

// plainRelease is the Release of all acquisitions; nothing may write to it. An acquisition has
// one request, which needs no number.
var plainRelease = &messages.Release{}
