package messages

// Withdrawal implements ask.Withdrawer. It returns the Cancel of this request. LockRef.Acquire
// sends it when its future is cancelled or dropped before Result has returned the grant.
func (m *Acquire) Withdrawal() any {
	return &Cancel{RequestId: m.GetRequestId(), Owner: m.GetOwner()}
}

// An owner that releases as it stops has ended when the answer comes, and an actor that ends while
// it waits gets one, too. protoactor does not log a dead letter of a type with this method. Granted
// has none: the lock takes it back.

// IgnoreDeadLetterLogging implements actor.IgnoreDeadLetterLogging.
func (*Released) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging implements actor.IgnoreDeadLetterLogging.
func (*Refused) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging implements actor.IgnoreDeadLetterLogging.
func (*Lost) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging implements actor.IgnoreDeadLetterLogging.
func (*Suspended) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging implements actor.IgnoreDeadLetterLogging.
func (*RevokeRequested) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging implements actor.IgnoreDeadLetterLogging.
func (*Contended) IgnoreDeadLetterLogging() {}
