package campaign

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// temporary are the reasons for which a request fails, or a grant ends, although a later request
// may succeed.
var temporary = []messages.Reason{
	messages.Reason_SESSION_LOST,
	messages.Reason_NODE_DELETED,
	messages.Reason_HOLD_EXPIRED,
	messages.Reason_LIMIT_EXCEEDED,
	messages.Reason_INTERNAL,
	messages.Reason_SEQUENCE_EXHAUSTED,
}

// IsTemporary reports whether a participant may lead if it asks again after the error.
func IsTemporary(err error) bool {
	return slices.ContainsFunc(temporary, func(reason messages.Reason) bool { return errors.Is(err, reason) })
}

// Retrying is the line of the log for a failed request that is repeated.
const Retrying = "request of a participant in an election failed and is repeated"

const (
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
)

// Pause returns the pause between a failed request and the next one, after so many others failed
// in a row: twice as long each time up to 10 s, half of it random, so that
// participants that failed at one moment do not ask again at one moment. The random half comes from
// crypto/rand, which testing/cryptotest makes repeatable.
func Pause(failed int) time.Duration {
	longest := min(firstPause<<min(failed, 10), longestPause)
	var random [8]byte
	rand.Read(random[:])
	return longest/2 + time.Duration(binary.BigEndian.Uint64(random[:])%uint64(longest/2))
}
