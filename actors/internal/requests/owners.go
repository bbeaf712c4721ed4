package requests

// Owners answers the owners of requests, on behalf of a state machine. A lock.Actor implements it
// for the actors of all recipes.
type Owners interface {
	// RefuseRequest: the request ends without the lock, or its release fails, because of why.
	RefuseRequest(id ID, why Reason)
	// Lose: the request holds the lock no longer, because of why.
	Lose(id ID, why Reason)
	// ConfirmRelease: the release of the request is done. stillHeld other requests of its owner
	// hold the lock yet.
	ConfirmRelease(id ID, stillHeld int)
	// RequestRevoke: another client asks the request, which holds the lock, to release it.
	RequestRevoke(id ID)
	// NotifyContended: other contenders may wait for what the request holds.
	NotifyContended(id ID)
}
