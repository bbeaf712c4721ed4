package messages

import "strconv"

// Error returns the text of the Reason. A Reason is an error of its own, so that
// errors.Is(err, Reason_TIMED_OUT) reports the reason of each error that wraps it, in every
// process that received the message.
func (r Reason) Error() string {
	if text, ok := reasonText[r]; ok {
		return text
	}
	return "actorlock: " + r.String()
}

// reasonText says "server" for ZooKeeper and for a lock server alike: details name them.
var reasonText = map[Reason]string{
	Reason_NOT_ACQUIRED:       "lock is not free",
	Reason_TIMED_OUT:          "timed out waiting for the lock",
	Reason_CANCELLED:          "request was cancelled",
	Reason_SESSION_LOST:       "session is lost",
	Reason_NODE_DELETED:       "lock node was deleted by another client",
	Reason_CLOSED:             "lock service is closed",
	Reason_NOT_HELD:           "grant is not held",
	Reason_INVALID:            "invalid request",
	Reason_NO_AUTH:            "access is denied",
	Reason_UNAVAILABLE:        "the server refuses the request",
	Reason_SEQUENCE_EXHAUSTED: "sequence numbers of the lock's directory are used up",
	Reason_INTERNAL:           "lock actor failed",
	Reason_STOPPED:            "lock actor has stopped",
	Reason_LIMIT_EXCEEDED:     "a limit is exceeded",
	Reason_OUTCOME_UNKNOWN:    "request may have been executed or not",
	Reason_WOULD_DEADLOCK:     "request would wait for its own owner",
	Reason_DISCONNECTED:       "no connection to the server",
	Reason_HOLD_EXPIRED:       "lock was held for as long as HoldAtMost allows",
	Reason_DRAINING:           "locks are being drained: no new requests",
	Reason_NO_DIRECTORY:       "lock's directory does not exist",
}

// Error returns the text of the reason and the detail.
func (r *Refused) Error() string { return join(r.GetReason(), r.GetDetail()) }

// Unwrap returns the Reason, and DISCONNECTED as well if the request ended without an answer
// from ZooKeeper.
func (r *Refused) Unwrap() []error {
	if r.GetDisconnected() {
		return []error{r.GetReason(), Reason_DISCONNECTED}
	}
	return []error{r.GetReason()}
}

// Error returns the text of the reason and the detail.
func (l *Lost) Error() string { return join(l.GetReason(), l.GetDetail()) }

// Unwrap returns the Reason.
func (l *Lost) Unwrap() error { return l.GetReason() }

// Error returns the text of the reason and the detail.
func (f *Failed) Error() string { return join(f.GetReason(), f.GetDetail()) }

// Unwrap returns the Reason.
func (f *Failed) Unwrap() error { return f.GetReason() }

func join(r Reason, detail string) string {
	if detail == "" {
		return r.Error()
	}
	return r.Error() + ": " + detail
}

// FormatSession returns the id of a ZooKeeper session as ZooKeeper's logs have it: hexadecimal,
// after 0x. The ids of a server whose number is 128 or greater are negative as an int64.
func FormatSession(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }
