package zkconn

import (
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

// Outcome says whether ZooKeeper has executed a request that ended with an error.
type Outcome int

const (
	Refused        Outcome = iota // not executed, nor would it be the next time
	NotSent                       // not executed, and may be sent again
	ConnectionLost                // the connection is gone: executed or not
	Inconclusive                  // the answer does not say: executed or not
)

// Classify returns the outcome of a single request, or of a transaction whose result names no failed
// operation, and the reason to answer if the outcome is final.
func Classify(err error) (Outcome, messages.Reason) {
	switch {
	case isAny(err, refusals):
		return Refused, ReasonFor(err)
	case isAny(err, notExecuted):
		return NotSent, messages.Reason_SESSION_LOST
	case errors.Is(err, zk.ErrAPIError):
		// Often an answer that the client could not decode.
		return Inconclusive, messages.Reason_UNAVAILABLE
	case errors.Is(err, errTooLarge):
		return Inconclusive, messages.Reason_LIMIT_EXCEEDED
	}
	var code ServerError
	switch {
	case !errors.As(err, &code):
		return ConnectionLost, messages.Reason_SESSION_LOST // with the connection
	case code > firstRefusal && code != CodeUnimplemented:
		return Inconclusive, messages.Reason_UNAVAILABLE // it can have failed after the commit
	}
	return Refused, messages.Reason_UNAVAILABLE
}

// IsTransient reports whether a request that failed with err is to be sent again if it may be executed twice, as
// a read may.
func IsTransient(err error) bool {
	outcome, _ := Classify(err)
	return err != nil && (outcome == ConnectionLost || outcome == NotSent)
}

// refusals are the errors by which a server, or the client before sending, refuses
// a request.
var refusals = []error{zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNoChildrenForEphemerals, zk.ErrNodeExists,
	zk.ErrNotEmpty, zk.ErrInvalidACL, zk.ErrAuthFailed, zk.ErrBadArguments, zk.ErrReconfigDisabled}

// notExecuted are the errors of requests that ZooKeeper has surely not executed. After the last two
// the connection or the session ends at once.
var notExecuted = []error{zk.ErrNoServer, ServerError(codeThrottled), zk.ErrSessionExpired, zk.ErrSessionMoved}

func isAny(err error, list []error) bool {
	return slices.ContainsFunc(list, func(e error) bool { return errors.Is(err, e) })
}

// ReasonFor returns the reason for an error that is final.
func ReasonFor(err error) messages.Reason {
	switch {
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed):
		return messages.Reason_NO_AUTH
	case errors.Is(err, zk.ErrBadArguments), errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return messages.Reason_INVALID
	case errors.Is(err, zk.ErrNodeExists):
		// The names of sequential nodes differ until the directory's counter sticks at its end.
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

// FirstFailedOp returns the index and the error of the first operation of a transaction that failed,
// or -1. The server reports no error for the operations before it, and a meaningless one for those
// behind. The end of the session is no operation's failure, though the first one has that error.
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
