package semaphore

import "github.com/actorlock/actorlock/actors/internal/requests"

// Acquire is a new request for permits.
type Acquire struct {
	ID requests.ID
	// Owner names the owner. Its requests do not enter again: they add up.
	Owner string
	// Permits is how many permits are wanted, 1 or more.
	Permits int
	// Try refuses the request rather than let it wait.
	Try bool
	// MultiLock marks the request of a multi-lock: see [State.Proceed].
	MultiLock bool
	// Data is the data of the leases.
	Data []byte
	// Revocable is Acquire.Revocable of the leases' own requests.
	Revocable bool
}

// Lease is one permit. Serial is the serial of the request for it; the rest is known once it is
// granted.
type Lease struct {
	Serial     uint64
	Node       string
	Generation uint64
	Czxid      int64
	Step       uint32
	Session    int64
	Epoch      uint64
}

// EffectKind is what an Effect asks for.
type EffectKind uint8

// The effects. The semaphore's actor performs the first five on the locks below and the others
// for the owners.
const (
	// EnterRequestQueue: acquire the request queue by a request Serial of Owner, perhaps as a Try;
	// call Granted, Refused and Lost.
	EnterRequestQueue EffectKind = iota
	// LeaveRequestQueue: withdraw the request Serial, or release what it was granted.
	LeaveRequestQueue
	// AcquireLease: acquire a lease of the request ID by a request Serial of Owner, with Data; call
	// Granted, Refused and Lost. The leases of one request are asked for in a row: one
	// transaction is to make them, and another transaction those of another request.
	AcquireLease
	// WithdrawLease: withdraw the request Serial, or release the lease. No answer is awaited.
	WithdrawLease
	// ReleaseLease: release the lease and call Released or Refused.
	ReleaseLease
	// ReportTurn: the request ID, of a multi-lock, has passed the request queue; call Proceed
	// once the multi-lock has passed the request queues of all its semaphores.
	ReportTurn
	// Grant: request ID holds its Leases.
	Grant
	// Refuse: request ID ends without its permits, or its release fails, because of Reason.
	Refuse
	// Lose: request ID holds its permits no longer, because of Reason.
	Lose
	// ConfirmRelease: the release of request ID is done.
	ConfirmRelease
	// RequestRevoke: another client asks request ID, which holds permits, to release them.
	RequestRevoke
)

// Effect is one thing to do. Its Kind says which fields count.
type Effect struct {
	Kind      EffectKind
	ID        requests.ID
	Reason    requests.Reason
	Serial    uint64
	Try       bool
	Data      []byte
	Owner     string
	Leases    []Lease
	Revocable bool
}

var effectNames = [...]string{"EnterRequestQueue", "LeaveRequestQueue", "AcquireLease", "WithdrawLease", "ReleaseLease", "ReportTurn", "Grant", "Refuse", "Lose", "ConfirmRelease", "RequestRevoke"}

// String returns the name of the constant.
func (k EffectKind) String() string { return effectNames[k] }
