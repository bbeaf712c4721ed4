package remote

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// protocolVersion is the version of messages/remote.proto.
const protocolVersion = 1

// maxMessage bounds the bytes of a frame: a message of the largest node data fits.
const maxMessage = 2 << 20

// maxNumbered bounds the bytes of a numbered message: a frame with it has room for what else it has.
const maxNumbered = maxMessage - 1<<10

// The limits of the numbered messages of one frame, and of their bytes. A message that is larger goes alone.
const (
	maxFrameMessages = 256
	maxFrameBytes    = 256 << 10
)

// maxAnswer bounds the bytes of a question and of an answer: no transport carries a larger one.
const maxAnswer = 1 << 20

// handshakeLimit bounds the first attempt to reach a server.
const handshakeLimit = 5 * time.Second

// renewalsInTime is how many renewals a client makes in the time for which one was answered.
const renewalsInTime = 3

// randomID returns a number that no one guesses, and that is not 0.
func randomID() uint64 {
	var random [8]byte
	rand.Read(random[:])
	return binary.LittleEndian.Uint64(random[:]) | 1
}

// isLast reports whether no other answer follows.
func isLast(a *messages.Answer) bool { return a.Reason != 0 || len(a.Value) == 0 }

// reasonOf returns an error as the reason and the detail of an answer.
func reasonOf(err error) (messages.Reason, string) {
	if refused, is := errors.AsType[*messages.Refused](err); is {
		return refused.Reason, refused.Detail
	}
	reason, is := errors.AsType[messages.Reason](err)
	switch {
	case is:
	case errors.Is(err, context.Canceled):
		reason = messages.Reason_CANCELLED
	default:
		reason = messages.Reason_UNAVAILABLE
	}
	return reason, strings.TrimPrefix(strings.TrimPrefix(err.Error(), reason.Error()), ": ")
}

// refusalOf returns the end of a lease, or the answer to a Hello, as an error.
func refusalOf(e *messages.Ended) error { return &messages.Refused{Reason: e.Reason, Detail: e.Detail} }
