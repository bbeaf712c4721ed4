// Package requests holds what all state machines and actors say about the requests of owners: their
// IDs, what they ask for, tables and lines of the open ones, the reasons for which they end, the
// answers, the tokens of grants, and the parts of a request that needs several.
//
// To be read in this order: reason.go, incoming.go, token.go, owners.go, table.go, line.go,
// byowner.go, parts.go.
package requests

import "strconv"

// ID names an open request. Its lower half is a place in a [Table], from 1, that no two open
// requests share; its upper half tells it from requests that had the same place before.
type ID uint64

// Reason says why a request is refused or a grant is lost. The numbers are those of Reason in
// lock.proto. The state machines find the reasons below themselves; any other comes in with an
// event and goes out unchanged.
type Reason int8

// The reasons that state machines find.
const (
	NotAcquired       Reason = 1
	TimedOut          Reason = 2
	Cancelled         Reason = 3
	SessionLost       Reason = 4
	NodeDeleted       Reason = 5
	Closed            Reason = 6
	NotHeld           Reason = 7
	Invalid           Reason = 8
	SequenceExhausted Reason = 11
	OutcomeUnknown    Reason = 15
	WouldDeadlock     Reason = 16
)

// reasonNames are those of all reasons of lock.proto.
var reasonNames = [...]string{
	NotAcquired: "NotAcquired", TimedOut: "TimedOut", Cancelled: "Cancelled", SessionLost: "SessionLost",
	NodeDeleted: "NodeDeleted", Closed: "Closed", NotHeld: "NotHeld", Invalid: "Invalid",
	9: "NoAuth", 10: "Unavailable", SequenceExhausted: "SequenceExhausted", 12: "Internal", 13: "Stopped", 14: "LimitExceeded",
	OutcomeUnknown: "OutcomeUnknown", WouldDeadlock: "WouldDeadlock", 17: "Disconnected",
	18: "HoldExpired", 19: "Draining",
}

// String returns the name of a reason of lock.proto.
func (r Reason) String() string {
	if r > 0 && int(r) < len(reasonNames) && reasonNames[r] != "" {
		return reasonNames[r]
	}
	return "Reason" + strconv.Itoa(int(r))
}
