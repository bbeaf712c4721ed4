package zkbridge

// A program that has thousands of requests at one moment sends them in parts, and awaits room before each
// part, so that the requests of others come between. A single request never waits for room.

// roomWait is a wait for room, as a message to the actor.
type roomWait struct {
	n   int    // requests that the waiter will send
	due uint64 // answers, from which on it does not wait any more
	f   func()
}

// rooms are the waits for room. They belong to the actor.
type rooms struct {
	waiting []roomWait
	answers uint64 // to requests, so far
	granted uint64 // answers: from then on all those are answered for which there was room
}

// maxBacklog is how many requests are unanswered at most when a wait for room ends. Fewer do not fill the
// transactions that are under way; with more, others wait for longer.
const maxBacklog = 256

// AwaitRoom calls f, once, when few of the requests to the bridge are unanswered, so that n more do not
// make others wait for long. The waits end one after the other, in their order, and each at the latest
// when as many requests are answered as were unanswered at its beginning. So each wait ends while ZooKeeper
// answers. The bridge also calls f without a session, and when it is closed. f runs on the bridge's goroutine
// or on the caller's, and must not block. AwaitRoom never blocks.
func (b *Bridge) AwaitRoom(n int, f func()) { b.ref.Tell(roomWait{n: n, f: f}) }

func (w roomWait) handle(a *bridgeActor) {
	w.due = a.rooms.answers + uint64(a.outstanding())
	a.rooms.waiting = append(a.rooms.waiting, w)
}

// outstanding returns how many requests are not answered.
func (a *bridgeActor) outstanding() int {
	if a.epoch == nil {
		return 0
	}
	return a.epoch.Len() + a.fresh.n
}

// endRoomWaits ends those waits for which there is room now.
func (a *bridgeActor) endRoomWaits() {
	for r := &a.rooms; len(r.waiting) > 0; {
		w, n := r.waiting[0], a.outstanding()
		// A wait that has ended counts with its n requests, which may be on their way.
		backlog := max(n, int(int64(r.granted-r.answers)))
		if n > 0 && backlog >= maxBacklog && r.answers < max(w.due, r.granted) {
			return
		}
		r.waiting[0] = roomWait{}
		r.waiting = r.waiting[1:]
		r.granted = max(r.granted, r.answers+uint64(n)) + uint64(w.n)
		w.f()
	}
}

// endAllRoomWaits ends all waits, because the bridge has ended.
func (a *bridgeActor) endAllRoomWaits() {
	for _, w := range a.rooms.waiting {
		w.f()
	}
	a.rooms.waiting = nil
}
