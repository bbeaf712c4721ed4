package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// apply ends all grants at the end of a session. What waits gets a new node in the next one.
func (ev Session) apply(s *State) {
	switch {
	case ev.State == Lost || ev.Epoch != s.epoch: // a new epoch also ends the session before it, whose Lost may not have come
		s.loseSession()
		s.epoch, s.firstSerial = ev.Epoch, s.lastSerial+1
	case ev.State == Suspended && s.session == Connected:
		s.suspend()
	case ev.State == Connected && s.session == Suspended:
		s.resume()
	}
	s.session = ev.State
}

// loseSession ends the grants of the session, and keeps the waiting contenders for the next one,
// except downgrades and those of atomic creates. (The lock's actor cancels tries and requests with
// fail_on_session_loss: see own.go of package lock.)
func (s *State) loseSession() {
	s.session = Lost
	for _, e := range s.entries.list {
		switch e.stage {
		case held:
			s.lose(e, requests.SessionLost)
		case leaving: // its node may outlive the loss, until ZooKeeper notices
			s.refuseRelease(e, requests.SessionLost)
		}
	}
	s.startAnew() // forgets the directory; what waits becomes unsent
}
