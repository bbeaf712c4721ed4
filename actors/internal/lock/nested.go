package lock

import "time"

// A program that acquires a lock, and acquires it again in a function that it calls, waits for
// itself unless both requests name one owner. To the lock, such a program looks like two goroutines.
// A request without an owner gets a hint if it has waited for some seconds, and another request of
// this process has held the lock since before.

// nestedWait is how long a request waits before it gets the hint.
const nestedWait = 3 * time.Second

// mayBeNested reports whether a request that waits is to get the hint.
func (l *Actor) mayBeNested(r *Request) bool {
	a := r.Acquisition()
	return l.holders > 0 && r.Granted == nil && a != nil && a.Owner() == "" && !a.IsElsewhere() &&
		l.grantedAt <= r.since && l.now()-r.since >= nestedWait
}

// nestedHint returns the hint for the error of a request whose wait is over, or "".
func (l *Actor) nestedHint(r *Request) string {
	if !l.mayBeNested(r) {
		return ""
	}
	return "; another request of this process has held the lock since before: give both one owner (WithOwner) if one is nested in the other"
}

// reportNested logs the hint for a request that has no other limit than its context. It does so
// once for each path, since a program may well hold a lock for long.
func (l *Actor) reportNested(r *Request) {
	if l.mayBeNested(r) && l.Manager.FirstMisuse(l.Path, "nested") {
		l.Manager.Log.Info("a request without an owner waits for another request of this process", "path", l.Path, "waits", l.now()-r.since,
			"do", "if the one is nested in the other, give both one owner (WithOwner); else nothing")
	}
}
