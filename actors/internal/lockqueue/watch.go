package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// What watches report, and whose watch or proof is old.

func (ev Watched) apply(s *State) {
	if s.awaitsMarker(ev.Serial) {
		s.heldMarkerRead(ev)
	}
	gone := slices.Sorted(slices.Values(ev.Gone))
	for _, name := range s.takeWatched(ev.Serial) {
		s.watches[name].active = s.session == Connected // a watch reports nothing without a connection
		if _, is := slices.BinarySearch(gone, name); is {
			s.nodeDeleted(name)
			continue
		}
		s.noteReadable(name)
		if c := s.find(name); c != nil {
			// If the node goes after its read, this process has the Wake before it hears of
			// anything later. Each later departure doubts the proof, and so does resume.
			c.provenAt = s.clock
			if c.entry != nil && string(ev.Data[name]) == queue.RevokeData {
				s.revoke(c.entry)
			}
		}
	}
}

// apply removes from the list a contender whose node was deleted, or notes that the changed node
// existed.
func (ev Wake) apply(s *State) {
	if ev.Epoch != s.epoch {
		return
	}
	delete(s.watches, ev.Node)
	if ev.Node == "" { // a child of the directory came or went
		s.contention.set, s.contention.later = false, len(s.contenders) > maxAtOnce
	} else if ev.Deleted {
		s.nodeDeleted(ev.Node)
	} else if c := s.find(ev.Node); c != nil {
		c.provenAt = s.clock
		s.requestWatch([]string{c.name}, 0) // the change has ended the watch
	}
}

// nodeDeleted notes that a node of any process is gone.
func (s *State) nodeDeleted(name string) {
	delete(s.watches, name)
	switch c := s.find(name); {
	case c == nil:
	case c.entry != nil:
		s.ownNodeDeleted(c.entry)
	default:
		s.removeFromList(c)
		s.allDoubtedAt = s.clock
		if kinds := downgradesFrom(s.rule, c.kind); kinds != 0 {
			s.unseenDowngrades, s.unseenSince = s.unseenDowngrades|kinds, s.clock
		}
	}
}

// revoke goes on after a node of this process was seen with the data RevokeData. The former data
// are restored, since others may read them. To be asked again does no harm.
func (s *State) revoke(e *entry) {
	if e.data == queue.RevokeData { // data that say so from the beginning mean nothing
		return
	}
	f := s.add(requests.RestoreData, 0)
	f.Node, f.Data, f.Owner = e.name, []byte(e.data), e.owner
	e.revoked = true
	if e.stage == held {
		s.notifyRevoked(e, e.requests)
	}
}

func (Tick) apply(s *State) {
	s.staleBefore, s.tickedAt = s.tickedAt, s.clock
	s.contention.later, s.untilTick = false, false
	if s.session != Connected {
		return
	}
	if s.listing.later {
		s.sendList()
	}
	s.tickOutside()
	var ask []string
	for _, c := range slices.Concat(s.nextToHold(), s.holders) {
		if c.provenAt < s.staleBefore && s.watches[c.name] == nil {
			ask = append(ask, c.name)
		}
	}
	if len(ask) > 0 {
		s.requestWatch(ask, 0)
	}
}
