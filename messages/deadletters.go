package messages

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
