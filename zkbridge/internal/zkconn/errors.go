package zkconn

import (
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

// outcome is what an error tells about the request that got it.
type outcome int

const (
	Refused        outcome = iota // not executed, and it would not be the next time
	NotSent                       // not executed, nothing stands against it
	ConnectionLost                // the connection went away: executed or not
	inconclusive                  // there was an answer, which does not tell: executed or not
)

// Classify tells what became of a single request, or of a multi that names no
// culprit, and the reason to give to who asked if that is final.
func Classify(err error) (outcome, messages.Reason) {
	switch {
	case isAny(err, refusals):
		return Refused, ReasonFor(err)
	case isAny(err, notExecuted):
		return NotSent, messages.Reason_SESSION_LOST
	case errors.Is(err, zk.ErrAPIError):
		// Often a reply that the client could not decode.
		return inconclusive, messages.Reason_UNAVAILABLE
	case errors.Is(err, errTooLarge):
		return inconclusive, messages.Reason_LIMIT_EXCEEDED
	}
	var code ServerError
	switch {
	case !errors.As(err, &code):
		return ConnectionLost, messages.Reason_SESSION_LOST // with the connection
	case code > firstRefusal && code != CodeUnimplemented:
		return inconclusive, messages.Reason_UNAVAILABLE // it can have failed after the commit
	}
	return Refused, messages.Reason_UNAVAILABLE
}

// refusals are the errors by which a server, or the client before sending, refuses
// a request.
var refusals = []error{zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists,
	zk.ErrNotEmpty, zk.ErrInvalidACL, zk.ErrAuthFailed, zk.ErrBadArguments, zk.ErrReconfigDisabled}

// notExecuted are the errors of requests that were surely not executed. After the last
// two the connection or the session ends at once.
var notExecuted = []error{zk.ErrNoServer, ServerError(codeThrottled), zk.ErrSessionExpired, zk.ErrSessionMoved}

func isAny(err error, list []error) bool {
	return slices.ContainsFunc(list, func(e error) bool { return errors.Is(err, e) })
}

// ReasonFor is the reason for an error that is final.
func ReasonFor(err error) messages.Reason {
	switch {
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed):
		return messages.Reason_NO_AUTH
	case errors.Is(err, zk.ErrBadArguments), errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return messages.Reason_INVALID
	case errors.Is(err, zk.ErrNodeExists):
		// Only sequential nodes are created for others, and their names differ
		// until the directory's counter sticks at its end.
		return messages.Reason_SEQUENCE_EXHAUSTED
	}
	return messages.Reason_UNAVAILABLE
}

const (
	codeInconsistent  = -2
	CodeUnimplemented = -6
	codeThrottled     = -127
	// Codes above this are the server's system errors.
	firstRefusal = -8
)

var errTooLarge = errors.New("the answer is larger than Config.MaxReply allows")

// FirstFailedOp is the first operation of a multi that failed. The server reports no
// error for those before it, and a meaningless one for those behind. That the session is
// over is no operation's fault, though the first one is told.
func FirstFailedOp(results []zk.MultiResponse) (int, error) {
	for i := range results {
		if err := results[i].Error; err != nil {
			if err == ServerError(codeInconsistent) || isAny(err, notExecuted) {
				return -1, nil
			}
			return i, err
		}
	}
	return -1, nil
}

func IsMissing(err error) bool { return errors.Is(err, zk.ErrNoNode) }
