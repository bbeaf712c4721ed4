//go:build !linux

package zkconn

import "time"

// start is an instant by both clocks.
var start = time.Now()

// systemSuspendedFor returns how far the wall clock has gone ahead of the monotonic one, in whole
// seconds. A clock that is set forward by a second or more counts as a suspend, too: a session is
// then lost too early, not too late.
func systemSuspendedFor() time.Duration {
	now := time.Now()
	return max(0, now.Round(0).Sub(start.Round(0))-now.Sub(start)).Truncate(time.Second)
}
