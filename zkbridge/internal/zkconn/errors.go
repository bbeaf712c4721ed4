package zkconn

import (
	"errors"

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

// Classify returns the outcome of a single request, or of a transaction whose result names no
// failed operation, and the reason to answer if the outcome is final.
func Classify(err error) (Outcome, messages.Reason) {
	switch {
	case errors.Is(err, zk.ErrNoServer), errors.Is(err, errNoContainers):
		return NotSent, messages.Reason_SESSION_LOST
	case errors.Is(err, ErrNoChroot):
		return Refused, messages.Reason_UNAVAILABLE
	case errors.Is(err, ErrNoDirectory):
		return Refused, messages.Reason_NO_DIRECTORY
	case errors.Is(err, errHangsUp):
		return Inconclusive, messages.Reason_UNAVAILABLE
	case errors.Is(err, errTooLarge):
		return Inconclusive, messages.Reason_LIMIT_EXCEEDED
	}
	if c := codeOf(err); c != nil {
		return c.outcome, c.reason
	}
	var unknown ServerError
	switch {
	case !errors.As(err, &unknown):
		return ConnectionLost, messages.Reason_SESSION_LOST // with the connection
	case unknown > codeAPIError:
		return Inconclusive, messages.Reason_UNAVAILABLE // it can have failed after the commit
	}
	return Refused, messages.Reason_UNAVAILABLE
}

// IsTransient reports whether a request that failed with err is to be sent again if it may be
// executed twice, as a read may.
func IsTransient(err error) bool {
	if err == nil {
		return false
	}
	outcome, _ := Classify(err)
	return outcome == ConnectionLost || outcome == NotSent
}

// IsThrottled reports whether a server has not executed a request because it is overloaded.
func IsThrottled(err error) bool { return errors.Is(err, ServerError(codeThrottled)) }

// ReasonFor returns the reason for an error that is final although the session lives.
func ReasonFor(err error) messages.Reason {
	if _, why := Classify(err); why != messages.Reason_SESSION_LOST {
		return why
	}
	return messages.Reason_UNAVAILABLE
}

// ErrNoChroot is the error of a chroot that does not exist and must not be created.
var ErrNoChroot = errors.New("it does not exist, and Config.RequireChroot is set")

// ErrNoDirectory is the error of a directory that does not exist and must not be created.
var ErrNoDirectory = errors.New("does not exist, and the lock requires that it does")

var errTooLarge = errors.New("the answer is larger than Config.MaxReply allows")

// FirstFailedOp returns the index and the error of the first operation of a transaction that
// failed, or -1. The server reports no error for the operations before it, and a meaningless one
// for those behind. The end of the session is no operation's failure, though the first one has that
// error.
func FirstFailedOp(results []zk.MultiResponse) (int, error) {
	for i := range results {
		if err := results[i].Error; err != nil {
			if outcome, _ := Classify(err); err == ServerError(codeInconsistent) || outcome == NotSent {
				return -1, nil
			}
			return i, err
		}
	}
	return -1, nil
}

func IsMissing(err error) bool { return errors.Is(err, zk.ErrNoNode) }
