package remote

import (
	"slices"
	"sync/atomic"
)

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

// countRefusal counts a refusal because of a limit. "" is none.
func (c *counters) countRefusal(l Limit) {
	if i := slices.Index(limits[:], l); i >= 0 {
		c.refusals[i].Add(1)
	}
}
