//go:build !linux

package zkconn

import "time"

// start is an instant by both clocks.
var start = time.Now()

var wallSteps stepSum

// systemSuspendedFor returns how far the wall clock has gone ahead of the monotonic one, in steps of a
// second or more. A clock that is set forward by that counts as a suspend, too: a session is then
// lost too early, not too late.
func systemSuspendedFor() time.Duration {
	return wallSteps.add(func() time.Duration {
		now := time.Now()
		return now.Round(0).Sub(start.Round(0)) - now.Sub(start)
	})
}
