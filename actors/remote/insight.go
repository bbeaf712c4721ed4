package remote

import (
	"context"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/messages"
)

// peerKey is the key of the Peer in the context of a client's request.
type peerKey struct{}

// ClientOf returns the client of a lock server whose request it is, from the context that the Monitor of
// the server's Locks gets (actors.Config.Monitor). It is false for a request of the server's process. It
// does not block.
func ClientOf(ctx context.Context) (Peer, bool) {
	p, is := ctx.Value(peerKey{}).(Peer)
	return p, is
}

// Change is something that a client has had the server do, beside requests for locks.
type Change struct {
	// Kind is "revoke" for a node whose owner is asked to release, or which is deleted after a grace;
	// "revoke-holders" for those of a lock; "set-count" and "try-set-count" for a number of permits.
	Kind string
	// Path is the path of the node, the lock or the number.
	Path string
	// Arguments are the others, as JSON: a grace in nanoseconds, or the number.
	Arguments []byte
}

// ServerStats counts what a LockServer has done since it was made. Locks.Stats of its Locks has the
// requests and the session with ZooKeeper.
type ServerStats struct {
	// Clients is how many clients have a lease.
	Clients int
	// LeasesLost counts the leases that have ended with grants for which the client had not let go:
	// because the client did not renew in time, or with the session of the server.
	LeasesLost uint64
	// LimitRefusals counts the clients, requests and questions that were refused because of a limit.
	LimitRefusals uint64
}

// Stats returns the present counts. It never blocks for long.
func (s *LockServer) Stats() ServerStats {
	return ServerStats{Clients: s.Clients(), LeasesLost: s.leasesLost.Load(), LimitRefusals: s.limitRefusals.Load()}
}

// countRefusal counts a refusal because of a limit.
func (s *LockServer) countRefusal(reason messages.Reason) {
	if reason == messages.Reason_LIMIT_EXCEEDED {
		s.limitRefusals.Add(1)
	}
}

// noteChange calls ServerConfig.Changed for a question that has something changed.
func (c *servedClient) noteChange(q *messages.Question, err error) {
	if c.server.cfg.Changed == nil {
		return
	}
	if _, changes, wrong := inspection.PathsOf(q); wrong != nil || !changes {
		return
	}
	c.server.cfg.Changed(c.peer, Change{Kind: q.GetKind(), Path: q.GetPath(), Arguments: slices.Clone(q.GetArguments())}, err)
}
