// Package requests holds what all state machines and actors say about the requests of owners: their
// IDs, what they ask for, tables and lines of the open ones, the reasons for which they end, the
// effects of machines, the tokens of grants, and the parts of a request that needs several.
//
// To be read in this order: requests.go, effect.go, table.go, list.go, spare.go, parts.go.
package requests

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/actorlock/actorlock/actors/queue"
)

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
	18: "HoldExpired", 19: "Draining", 20: "NoDirectory",
}

// String returns the name of a reason of lock.proto.
func (r Reason) String() string {
	if r > 0 && int(r) < len(reasonNames) && reasonNames[r] != "" {
		return reasonNames[r]
	}
	return "Reason" + strconv.Itoa(int(r))
}

// MaxRepeats is how often a request begins anew at once after the loss of its nodes. Later it waits
// for the next tick: its nodes are lost as they come.
const MaxRepeats = 8

// Incoming is a request as a state machine takes it in.
type Incoming struct {
	ID ID
	// Owner names the owner; "" is an owner of this request alone.
	Owner string
	Kind  queue.Kind
	// Permits is how many permits of a semaphore are wanted, 1 or more.
	Permits int
	// Atomic reports that the request is a multi-lock's: one transaction is to make its node, or its
	// nodes in a directory, together with nodes of other locks.
	Atomic bool
	// Try refuses the request rather than let it wait.
	Try bool
	// NotifyContended asks for one NotifyContended while the request holds the lock.
	NotifyContended bool
	// Revocable notifies the holder at once when another client asks it to release.
	Revocable bool
	// Data is the data of a node that is made for the request.
	Data []byte
}

// Token is the fencing token of a grant. actors.Token, which has the same fields, says what they
// are.
type Token struct {
	Generation uint64
	Czxid      int64
	Step       uint32
}

// String returns the token's text: see actors.Token.
func (t Token) String() string {
	return fmt.Sprintf("%016x.%016x.%08x", t.Generation, uint64(t.Czxid), t.Step)
}

// ParseToken returns the token of a text that String has returned. It reports whether it is one.
func ParseToken(text string) (t Token, ok bool) {
	var czxid uint64
	_, err := fmt.Sscanf(text, "%16x.%16x.%8x", &t.Generation, &czxid, &t.Step)
	t.Czxid = int64(czxid)
	return t, err == nil && t.String() == text
}

// MarshalText implements encoding.TextMarshaler by String.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler by ParseToken.
func (t *Token) UnmarshalText(text []byte) error {
	token, ok := ParseToken(string(text))
	if !ok {
		return fmt.Errorf("token %q", text)
	}
	*t = token
	return nil
}

// Compare returns -1, 0 or +1 as t is less than, equal to or greater than other.
func (t Token) Compare(other Token) int {
	return cmp.Or(cmp.Compare(t.Generation, other.Generation), cmp.Compare(uint64(t.Czxid), uint64(other.Czxid)), cmp.Compare(t.Step, other.Step))
}
