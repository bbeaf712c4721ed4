package semaphore

import "github.com/actorlock/actorlock/actors/internal/requests"

// PermitActor performs what a State asks for. The first five methods are about the locks below, in
// which a State has requests by serials of its own; the others are for the owners.
type PermitActor interface {
	// EnterRequestQueue acquires the request queue for r. The State's Granted, Refused and Lost
	// must be called.
	EnterRequestQueue(serial uint64, r requests.Incoming)
	// LeaveRequestQueue withdraws the request, or releases what it was granted.
	LeaveRequestQueue(serial uint64)
	// AcquireLeases acquires a lease for each serial. One transaction is to make all leases of a
	// request, if they fit into one. The State's Granted, Refused and Lost must be
	// called.
	AcquireLeases(r requests.Incoming, serials []uint64)
	// WithdrawLease withdraws the request, or releases the lease. No answer is awaited.
	WithdrawLease(serial uint64)
	// ReleaseLease releases the lease. The State's Released or Refused must be called, also after a
	// Lost that has crossed the release.
	ReleaseLease(serial uint64)
	// ReportTurn: the request, of a multi-lock, has passed the request queue. The State's Proceed
	// must be called once the multi-lock has passed the request queues of all its semaphores.
	ReportTurn(id requests.ID)
	// GrantLeases: the request holds its leases.
	GrantLeases(id requests.ID, leases []Lease)
	requests.Owners
}

// Lease is the grant of one permit. Serial is the serial of the request for it.
type Lease struct {
	Serial uint64
	Node   string
	Token  requests.Token
}
