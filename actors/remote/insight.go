package remote

import (
	"context"
	"slices"
	"sync/atomic"

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

// Change is something that a client has had the server do, besides requests for locks.
type Change struct {
	// Kind is "revoke" for a node whose owner is asked to release, or which is deleted after a grace;
	// "revoke-holders" for those of a lock; "set-count" and "try-set-count" for a number of permits.
	Kind string
	// Path is the path of the node, the lock or the number.
	Path string
	// Arguments are the others, as JSON: a grace in nanoseconds, or the number.
	Arguments []byte
}

// Limit is a limit of a LockServer, as ServerStats counts refusals because of it.
type Limit string

// The limits.
const (
	// LimitClients is ServerConfig.MaxClients.
	LimitClients Limit = "clients"
	// LimitClientsPerPeer is ServerConfig.MaxClientsPerPeer.
	LimitClientsPerPeer Limit = "clients_per_peer"
	// LimitConnections is that of all connections, and LimitConnectionsPerAddress that of one address.
	LimitConnections           Limit = "connections"
	LimitConnectionsPerAddress Limit = "connections_per_address"
	// LimitRequests is ServerConfig.MaxRequestsPerClient.
	LimitRequests Limit = "requests"
	// LimitData is ServerConfig.MaxDataPerClient.
	LimitData Limit = "data"
	// LimitQuestions is ServerConfig.MaxQuestionsPerClient.
	LimitQuestions Limit = "questions"
	// LimitAnswers is that of the bytes of an answer, of what is read for it, and of the answers that wait
	// for a client.
	LimitAnswers Limit = "answers"
	// LimitPending is that of the messages that a client does not confirm, or does not read: the server
	// ends its stream.
	LimitPending Limit = "pending"
)

var limits = [...]Limit{LimitClients, LimitClientsPerPeer, LimitConnections, LimitConnectionsPerAddress, LimitRequests, LimitData, LimitQuestions, LimitAnswers, LimitPending}

// ServerStats counts what a LockServer has done since it was made. Locks.Stats of its Locks has the
// requests and the session with ZooKeeper.
type ServerStats struct {
	// Clients is how many clients have a lease.
	Clients int
	// PendingMessages and PendingBytes are of the messages that the clients have not confirmed.
	PendingMessages, PendingBytes int
	// LeasesLost counts the leases that have ended with grants for which the client had not let go:
	// because the client did not renew in time, or with the session of the server.
	LeasesLost uint64
	// LateRenewals counts the renewals that came when less than half of the time was left for which the
	// server grants a lease. A client renews when two thirds are left.
	LateRenewals uint64
	// LimitRefusals counts by limit, of which it has all, what was refused: clients, connections, requests
	// and questions, and streams that the server has ended.
	LimitRefusals map[Limit]uint64
}

// counters are what a LockServer counts for its ServerStats.
type counters struct {
	leasesLost, lateRenewals      atomic.Uint64
	pendingMessages, pendingBytes atomic.Int64
	refusals                      [len(limits)]atomic.Uint64
}

// Stats returns the present counts. It never blocks for long.
func (s *LockServer) Stats() ServerStats {
	all := ServerStats{Clients: s.Clients(), PendingMessages: int(s.counts.pendingMessages.Load()), PendingBytes: int(s.counts.pendingBytes.Load()),
		LeasesLost: s.counts.leasesLost.Load(), LateRenewals: s.counts.lateRenewals.Load(), LimitRefusals: map[Limit]uint64{}}
	for i, l := range limits {
		all.LimitRefusals[l] = s.counts.refusals[i].Load()
	}
	return all
}

// countRefusal counts a refusal because of a limit. "" is none.
func (c *counters) countRefusal(l Limit) {
	if i := slices.Index(limits[:], l); i >= 0 {
		c.refusals[i].Add(1)
	}
}

// countPending counts what the client has not confirmed among that of all clients.
func (c *servedClient) countPending(messages, bytes int) {
	if messages != c.counted.messages || bytes != c.counted.bytes {
		c.server.counts.pendingMessages.Add(int64(messages - c.counted.messages))
		c.server.counts.pendingBytes.Add(int64(bytes - c.counted.bytes))
		c.counted.messages, c.counted.bytes = messages, bytes
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
