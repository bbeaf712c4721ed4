// Package requests has the requests to the bridge that only read, and what each request of a goroutine
// that waits has.
package requests

import (
	"errors"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/jobs"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/watches"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// InEpoch is what a request needs of the epoch that it runs in: what the writer needs of it, and more. Its
// methods do not block, and must be called in the bridge's actor.
type InEpoch interface {
	writer.Epoch
	Jobs() *jobs.Kinds
	Watches() *watches.Table
	NodeReads() *NodeReads
	// Close notes that a request is being answered: it is open no longer.
	Close(r reply.Request)
}

// Waited is a request of a goroutine that waits for the result.
type Waited interface {
	reply.Request
	Called() *Call
	Start(ep InEpoch)
}

// Call is what each Waited has.
type Call struct {
	reply.Place
	Epoch    uint64 // in which alone the request runs
	FailFast bool   // it does not wait for a connection
}

// Called returns the Call of a request.
func (c *Call) Called() *Call { return c }

// ReasonOf returns the Reason in an error of the bridge, or the Reason for an error of ZooKeeper.
func ReasonOf(err error) messages.Reason {
	if failure, is := errors.AsType[*messages.Failed](err); is {
		return failure.Reason
	}
	if why, is := errors.AsType[messages.Reason](err); is {
		return why
	}
	return zkconn.ReasonFor(err)
}

// retryRead sends a read again that has failed with the connection. It returns why any other fails.
func retryRead(ep InEpoch, h *zkconn.HangUps, err error, read func()) error {
	if !zkconn.IsTransient(err) {
		return err
	}
	final := h.Note(err)
	if final == nil {
		ep.RetryAfter(h.Pause(), read)
	}
	return final
}
