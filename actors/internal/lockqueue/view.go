package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The list of the contenders in the directory, and the rule's questions to it.

// listsOwn reports whether a contender of this process is in the list.
func (v *directoryView) listsOwn() bool { return len(v.contenders) > v.foreign }

// follows reports whether a sequence number is the next one after completeThrough.
func (v *directoryView) follows(seq int64) bool { return seq == v.completeThrough+1 }

// parse returns the number of a child, and its kind by the rule. ok is false for a name of no form
// that the rule knows.
func (s *State) parse(name string) (seq int64, kind queue.Kind, ok bool) {
	if seq, kind, ok = s.rule.Parse(name); !ok {
		return unknownSeq, queue.Exclusive, false
	}
	return queue.Rank(seq), kind, true
}

// find returns the contender of a name that is in the list.
func (s *State) find(name string) *contender {
	seq, _, _ := s.parse(name)
	for _, c := range s.contenders[place(s.contenders, seq):] {
		if c.name == name {
			return c
		}
		if c.seq > seq {
			break
		}
	}
	return nil
}

// insertByKind inserts a contender into the one of the lists that is of its kind.
func (s *State) insertByKind(lists *[][]*contender, c *contender) {
	if *lists == nil {
		*lists = make([][]*contender, len(s.rule.BlockedBy))
	}
	(*lists)[c.kind] = insert((*lists)[c.kind], c)
}

// addToList adds a contender of this process, which is not in the list.
func (s *State) addToList(e *entry) {
	e.listed = true
	s.contenders = insert(s.contenders, &e.contender)
	if s.kindsDiffer {
		s.insertByKind(&s.byKind, &e.contender)
	}
}

func (s *State) removeFromList(c *contender) {
	if c.entry != nil && c.entry.stage >= makingMarker { // otherwise it is not in holders
		s.holders = remove(s.holders, c)
	}
	if c.listed {
		c.listed = false
		s.contenders = remove(s.contenders, c)
		if s.kindsDiffer {
			s.byKind[c.kind] = remove(s.byKind[c.kind], c)
		}
		if c.entry == nil {
			s.foreign--
		}
	}
}

// addAnew adds a contender of this process to the list of another directory.
func (s *State) addAnew(e *entry) {
	s.addToList(e)
	switch e.stage {
	case queued:
		s.insertByKind(&s.waiting, &e.contender)
	case held, makingMarker:
		s.holders = insert(s.holders, &e.contender)
	}
}

// forget empties the list, holders and waiting, and returns the entries that were in the list. They
// keep their stages, and waitingTries still counts them. So the caller adds each of them anew, or
// corrects waitingTries.
func (s *State) forget() (entries []*entry) {
	for _, c := range s.contenders {
		if c.listed = false; c.entry != nil {
			entries = append(entries, c.entry)
		}
	}
	s.contenders, s.foreign, s.holders, s.completeThrough = nil, 0, nil, nothingKnown
	clear(s.byKind)
	clear(s.waiting)
	return entries
}

// extendComplete moves completeThrough over numbers that have become consecutive. It stops at a
// node of this process that may be in another directory: there the same numbers belong to other
// nodes.
func (s *State) extendComplete() {
	for _, c := range s.contenders[place(s.contenders, s.completeThrough+1):] {
		if !s.follows(c.seq) || !c.inDirectory {
			return
		}
		s.completeThrough++
	}
}

// ofKind returns the contenders of a kind, by number. If each kind is blocked by all, it returns
// all contenders for the first kind and none for the others, because then nothing depends on which
// kind they are of.
func (s *State) ofKind(kind queue.Kind) []*contender {
	switch {
	case s.kindsDiffer && len(s.byKind) > 0:
		return s.byKind[kind]
	case !s.kindsDiffer && kind == 0:
		return s.contenders
	}
	return nil
}

// blockersAhead returns how many contenders ahead of a number block one of a kind.
func (s *State) blockersAhead(of queue.Kind, seq int64) (n int) {
	for kind := range queue.Kind(len(s.rule.BlockedBy)) {
		if s.rule.BlockedBy[of].Has(kind) {
			n += place(s.ofKind(kind), seq)
		}
	}
	return n
}

// nearestBlockers returns the contenders that block an entry, nearest first. As many as the rule
// has Permits keep it waiting. If there is one more, which is the last that nearestBlockers
// returns, a single departure is not enough. It returns none if all contenders are of this process,
// whose departures need no watch.
func (s *State) nearestBlockers(e *entry) []*contender {
	if s.foreign == 0 {
		return nil
	}
	s.blockers = s.blockers[:0]
	for kind := range queue.Kind(len(s.rule.BlockedBy)) {
		if s.rule.BlockedBy[e.kind].Has(kind) {
			list := s.ofKind(kind)
			end := place(list, e.seq)
			s.blockers = append(s.blockers, list[max(end-s.rule.Permits-1, 0):end]...)
		}
	}
	slices.SortStableFunc(s.blockers, compareSeq)
	slices.Reverse(s.blockers)
	return s.blockers[:min(len(s.blockers), s.rule.Permits+1)]
}

// blockedLocally reports whether contenders of this process alone block a new request. Contenders
// of other processes may be gone unnoticed: ZooKeeper knows.
func (s *State) blockedLocally(kind queue.Kind) bool {
	set, n := s.rule.BlockedBy[kind], 0
	for kind := range queue.Kind(len(s.rule.BlockedBy)) {
		list := s.ofKind(kind)
		for i := len(list) - 1; i >= 0 && n < s.rule.Permits && set.Has(kind); i-- {
			if list[i].entry != nil {
				n++
			}
		}
	}
	for _, early := range []*requests.List[entry]{&s.unanswered, &s.unsent} {
		for e := range early.All() {
			if n >= s.rule.Permits {
				return true
			}
			if !e.listed && e.stage != abandoned && set.Has(e.kind) {
				n++
			}
		}
	}
	return n >= s.rule.Permits
}
