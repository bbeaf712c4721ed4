package queue

// ID names a request for the lock. Whoever makes the events chooses it, never
// twice for one State, as Table does: its lower half is a place in a slice, from 1, that
// no two open requests share.
type ID uint64

// Why says why a request is refused or a grant is lost. The numbers are those of
// Reason in lock.proto.
type Why int8

// What Step itself finds; others come in with events and go out unchanged.
const (
	NotAcquired Why = 1
	TimedOut    Why = 2
	Cancelled   Why = 3
	SessionLost Why = 4
	NodeDeleted Why = 5
	Closed      Why = 6
	NotHeld     Why = 7
	Invalid     Why = 8
	Exhausted   Why = 11
	Unknown     Why = 15
	Deadlock    Why = 16
)
