package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// The contenders of this process.

func (s *State) startWaiting(e *entry) {
	e.stage = queued
	s.insertByKind(&s.waiting, &e.contender)
	if e.hasTry() {
		s.waitingTries++
	}
}

func (s *State) stopWaiting(e *entry) {
	if e.stage == queued {
		s.waiting[e.kind] = remove(s.waiting[e.kind], &e.contender)
		if e.hasTry() {
			s.waitingTries--
		}
	}
}

// waitingInOrder returns all queued entries by number.
func (s *State) waitingInOrder() (all []*entry) {
	for _, line := range s.waiting {
		all = slices.AppendSeq(all, own(line))
	}
	slices.SortFunc(all, func(a, b *entry) int { return compareSeq(&a.contender, &b.contender) })
	return all
}

// nextToHold returns the contenders that may be granted next: the first queued one of each kind,
// unless an earlier one of these keeps it waiting. Contenders of one kind hold in their order. The
// slice is valid until a contender starts or stops waiting.
func (s *State) nextToHold() []*contender {
	s.firstWaiting = s.firstWaiting[:0]
	for _, line := range s.waiting {
		if len(line) > 0 {
			s.firstWaiting = insert(s.firstWaiting, line[0])
		}
	}
	next := s.firstWaiting[:0]
	for _, c := range s.firstWaiting {
		if !slices.ContainsFunc(next, func(w *contender) bool { return keepsWaiting(s.rule, w.kind, c.kind) }) {
			next = append(next, c)
		}
	}
	return next
}

// maxListsDue bounds the CreateNodes with ListAfter that are not answered. There are that many if
// requests end while their creates wait to be sent: if each batch of them read all names, that
// would be the square of their number. A contender without a list asks for one once its node is
// made.
const maxListsDue = 64

// awaitAnswer notes that the entry's CreateNode is sent.
func (s *State) awaitAnswer(e *entry) {
	s.unanswered.Append(e, &e.link)
	s.creating++
	if e.listAfter {
		s.listsDue++
	}
}

// markAnswered notes that the entry's CreateNode is answered.
func (s *State) markAnswered(e *entry) {
	if e.stage == creating {
		s.creating--
	}
	if e.listAfter {
		s.listsDue--
	}
	e.stage = created
	e.link.Leave()
}

// behindOwn reports whether a new contender comes behind others of this process. Then its place
// mostly follows from theirs, without a list.
func (s *State) behindOwn() bool {
	return s.listsOwn() || s.creating > 0
}

// waitsOutside reports whether an entry waits outside. A downgrade does not: it takes the number of
// its owner's node, and that owner may not leave before.
func (s *State) waitsOutside(e *entry) bool {
	return (s.numbers.ending() || s.untilTick) && e.downgrade.of == nil
}

// noteRepeat notes that an entry queues again. If it has done so often, new nodes wait for the next Tick.
// Another client may delete the nodes as they come, or a server may leave them out of its lists: creates
// without a pause would keep that server and this process busy.
func (s *State) noteRepeat(e *entry) {
	if e.repeats < requests.MaxRepeats {
		e.repeats++
	} else {
		s.untilTick = true
	}
}

// anyOutside reports whether entries wait outside.
func (s *State) anyOutside() bool { return s.session != Lost && s.unsent.First() != nil }

// detach ends the bond between an entry and the one beside which it was created, which detach
// returns.
func (s *State) detach(e *entry) *entry {
	origin := e.downgrade.of
	if origin != nil {
		e.downgrade.of = nil
		origin.downgrade.pending--
	}
	return origin
}

// goneReason returns why a node is gone that this process has not deleted.
func (s *State) goneReason() requests.Reason {
	if s.session == Lost {
		return requests.SessionLost
	}
	return requests.NodeDeleted
}
