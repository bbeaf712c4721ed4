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

// await adds a wait, which begins when so many requests are unanswered.
func (r *rooms) await(w roomWait, outstanding int) {
	w.due = r.answers + uint64(outstanding)
	r.waiting = append(r.waiting, w)
}

// end ends those waits for which there is room while so many requests are unanswered: all if there are none.
func (r *rooms) end(outstanding int) {
	for len(r.waiting) > 0 {
		w := r.waiting[0]
		// A wait that has ended counts with its n requests, which may be on their way.
		backlog := max(outstanding, int(int64(r.granted-r.answers)))
		if outstanding > 0 && backlog >= maxBacklog && r.answers < max(w.due, r.granted) {
			return
		}
		r.waiting[0] = roomWait{}
		r.waiting = r.waiting[1:]
		r.granted = max(r.granted, r.answers+uint64(outstanding)) + uint64(w.n)
		w.f()
	}
}
