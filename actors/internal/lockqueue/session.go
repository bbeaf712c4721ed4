package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// Sessions come and go, and at last the lock is closed.

func (e Session) apply(s *State) {
	switch {
	case e.State == Lost || e.Epoch != s.epoch:
		s.loseSession()
		s.epoch, s.oldest = e.Epoch, s.serials+1
	case e.State == Suspended && s.session == Connected:
		s.suspend()
	case e.State == Connected && s.session == Suspended:
		// What happened meanwhile may have been missed: look again, at the
		// contenders and at what is watched.
		s.session = Connected
		s.doubtedAt = s.clock
		clear(s.watches)
		s.outlook.set = false
		if len(s.list) > 0 {
			s.askList()
		}
		for _, c := range s.list {
			if c.ours && c.stage == held {
				s.heed(c)
			}
		}
	}
	s.session = e.State
	if s.session != Lost {
		again := slices.DeleteFunc(s.unsent, hasLeft)
		s.unsent, s.left = nil, 0
		for _, c := range again {
			s.send(c)
		}
	}
	s.settle()
}

// suspend ends what watches prove from now on: they report nothing without a connection.
func (s *State) suspend() {
	for _, c := range s.list {
		if w := s.watches[c.name]; w != nil && w.active {
			w.active, c.provenAt = false, s.clock
		}
	}
}

// loseSession ends what the session carried. Waiting contenders are kept for the
// next session, in their order.
func (s *State) loseSession() {
	s.session = Lost
	for _, c := range s.inOrder() {
		switch c.stage {
		case held:
			s.lose(c, requests.SessionLost)
		case leaving: // its node may outlive the loss, until ZooKeeper notices
			s.refuseRelease(c, requests.SessionLost)
		}
	}
	var first []*contender
	if c := s.mark.c; c != nil && c.stage == marking && len(c.requests) > 0 {
		first = append(first, c)
	}
	s.mark = mark{}
	again := slices.Concat(first, s.inLine(), slices.DeleteFunc(s.outstanding, func(c *contender) bool {
		return c.stage != creating
	}), slices.DeleteFunc(s.unsent, hasLeft))
	s.left, s.heirs = 0, 0
	for _, c := range s.list {
		c.listed = false
	}
	clear(s.ours)
	clear(s.watches)
	clear(s.waiting)
	s.list, s.foreign, s.tries, s.outstanding, s.unsent = nil, 0, 0, nil, nil
	s.listing, s.listAgain, s.horizon, s.directory, s.byCzxid, s.departing = 0, false, unknown, 0, false, nil
	s.outlook = outlook{wanted: s.outlook.wanted}
	for _, c := range again {
		s.send(c)
	}
}

// inOrder is ours by serial: effects come in an order that does not depend on a map.
func (s *State) inOrder() []*contender {
	all := make([]*contender, 0, len(s.ours))
	for _, c := range s.ours {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *contender) int { return int(int64(a.serial) - int64(b.serial)) })
	return all
}

// apply: the nodes of all contenders are deleted. The State goes on taking in what the
// bridge answers until Ending is false.
func (e Close) apply(s *State) {
	s.closed = e.Reason
	s.arrive(false)
	for _, c := range slices.Concat(s.unsent, s.inOrder()) {
		switch c.stage {
		case held:
			s.lose(c, e.Reason) // a mark stays: its owner may not have ended its work
			s.delist(c)
			s.delete(c)
		case unsent, creating, queued, marking:
			s.refuseAll(c, e.Reason)
		case leaving: // nobody will hear of the end of its Delete
			s.refuseRelease(c, e.Reason)
		}
	}
}
