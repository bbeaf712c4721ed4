package zkbridge

import "time"

// Internals is what the packages of locks ask of a [Bridge], beside its own methods. They are not below
// zkbridge, so that a folder internal cannot hide it from programs alone. Its methods are not part of the
// documentation, and may change in any version.
type Internals = *internals

type internals struct {
	*Bridge
	failFast bool // see FailFast
}

// Internals returns what the packages of locks ask of the bridge. It does not block.
func (b *Bridge) Internals() Internals { return &internals{Bridge: b} }

// Now returns the time since Open. While the machine is suspended it goes on, unlike the monotonic
// clock. It costs little more than half of time.Now.
func (b *internals) Now() time.Duration { return b.now() }

// TimeOf returns the time at which Now returned at.
func (b *internals) TimeOf(at time.Duration) time.Time { return b.cfg.Clock.TimeOf(at) }

// LostAt is Lost for a caller that has read the clock: Now returned at.
func (b *internals) LostAt(epoch uint64, at time.Duration) bool { return b.lostAt(epoch, at) }

// NoTokens returns why no lock can be granted in the present session: the generation of tokens is
// not known, or too low after it or ZooKeeper's transactions went back, or the session is a local one,
// which the servers do not upgrade. It returns nil otherwise. It never blocks.
func (b *internals) NoTokens() error {
	if why := b.noTokens.Load(); why != nil {
		return *why
	}
	return nil
}

// OnBatch has f called with the number of operations of each batch that is sent from now on; nil
// ends that. The bridge's actor calls f, which must not block.
func (b *internals) OnBatch(f func(operations int)) {
	b.counters.onBatch.Store(&f)
}
