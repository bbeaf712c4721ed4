package actors

import (
	"time"

	"github.com/actorlock/actorlock/actors/internal/recipes"
)

// LockDelay keeps a mutex closed for d after a holder that did not release it: a holder whose
// session was lost, whose process ended or closed its Locks, whose node was deleted, or whose time
// was over by HoldAtMost. Its last writes may still be under way. d is the time for them to arrive,
// if the protected resource cannot check tokens. After a release the next contender holds at once.
// d must be positive and at most a minute. The delay counts from when the next contender notices
// the end of the holder.
//
// All clients of the lock should have the same delay. Clients without a delay, and those of other
// libraries, share the lock all the same, but neither wait nor make others wait. They leave the
// held marker as it is, so that a later contender may wait for nothing.
//
// A holder is known by the held marker, the node <path>-__held__, which it creates before it is
// granted the lock and deletes together with its own node. That is one write more for each
// acquire, and rules out hand-offs within a process without a round trip. A Close that overtakes
// a release is no release: wait for Unlock. After an unclean end the marker stays until a holder
// releases again; deleting it by hand spares later contenders the delay.
//
// While the delay lasts requests wait as they do for other contenders: they can be cancelled and
// time out, and Try does not wait. The delay then goes on without them.
func LockDelay(d time.Duration) LockOption { return lockOption(recipes.Delay(d)) }
