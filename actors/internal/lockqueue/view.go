package lockqueue

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/actorlock/actorlock/actors/queue"
)

// directoryView is what this process knows of the contenders in the lock's directory. Each
// contender up to completeThrough is in the list, or its node is gone for good: the numbers of one
// directory only grow, so a new node has a number beyond. (For downgrades see unseenDowngrades.) A
// contender may be granted only if its number is up to completeThrough, since a gap in the numbers
// below it may hide an earlier contender.
type directoryView struct {
	// contenders are ordered by number; foreign counts those of other processes. byKind has the
	// same contenders for each kind: how many block another follows from their places there.
	// Without kindsDiffer it is empty (see ofKind).
	contenders []*contender
	byKind     [][]*contender
	foreign    int
	// completeThrough is a number. It is nothingKnown before the first list of the directory.
	completeThrough int64
	// directory is the czxid of the directory, 0 if it is not known yet. It only grows within
	// a session. All else here is about this directory.
	directory int64
	// unseenDowngrades are the kinds of the downgrades that contenders of other processes may have
	// left at their places when they went, such as a reader at the place of a writer. unseenSince
	// is the clock at which the last of them went. A list asked for later shows such downgrades.
	unseenDowngrades queue.KindSet
	unseenSince      uint64
	numbers          numbers // numberend.go: how near the end of its numbers the directory is
	// othersCame is for how many creates to come those of other processes are expected in between:
	// see mayHaveMissed.
	othersCame uint8
}

// nothingKnown is completeThrough before the first list, less than each number.
const nothingKnown int64 = math.MinInt64 + 1

func newView() directoryView {
	return directoryView{completeThrough: nothingKnown, numbers: newNumbers()}
}

// unknownSeq is the number of a child without one in its name. It is never beyond completeThrough.
const unknownSeq = nothingKnown - 1

// contender is a node in the lock's directory, as this process has last seen it: one of any
// process. There may be many.
type contender struct {
	name string
	// seq is the contender's place in the queue: its number (see parse), or unknownSeq for a name
	// of no known form.
	seq  int64
	kind queue.Kind
	// listed reports whether the contender is in directoryView.contenders, and inDirectory whether
	// its node is known to be in State.directory. Of another process's contender a list has shown
	// that.
	listed, inDirectory bool
	proof
	// entry is nil for a contender of another process. For one of this process it is the entry
	// that the contender is part of.
	entry *entry
}

// proof says when a contender's node is known to have existed.
type proof struct {
	// provenAt is the latest clock at which this process knows that the node existed. A list or a
	// Created proves that for the clock of its request, and a watch for the clock of its event.
	// provenAt never decreases while the node is the same.
	provenAt uint64
	// hiddenAt is a doubt (see proofs): the clock at which a list last showed a departure but not
	// this node.
	hiddenAt uint64
	// shownAt is the clock at which the last list came that shows the node. A list that was asked
	// for before shownAt does not remove a contender with unknownSeq. (For other contenders their
	// number says whether a list is too old.)
	shownAt uint64
}

// place returns the index of a number in a sorted list, or the index at which it would be inserted.
func place(list []*contender, seq int64) int {
	// Mostly the number comes after all others.
	if n := len(list); n == 0 || list[n-1].seq < seq {
		return n
	}
	return sort.Search(len(list), func(i int) bool { return list[i].seq >= seq })
}

// compareSeq orders contenders by number.
func compareSeq(a, b *contender) int { return cmp.Compare(a.seq, b.seq) }

func insert(list []*contender, c *contender) []*contender {
	return slices.Insert(list, place(list, c.seq), c)
}

// shift drops the first element of a list. A list that becomes empty keeps its memory.
func shift[T any](list []*T) []*T {
	list[0] = nil
	if len(list) == 1 {
		return list[:0]
	}
	return list[1:]
}

func remove(list []*contender, c *contender) []*contender {
	i := place(list, c.seq)
	for ; i < len(list) && list[i] != c; i++ {
	}
	switch {
	case i >= len(list):
		return list
	case i < len(list)/2: // the usual departure is one of the first: move those before it
		copy(list[1:], list[:i])
		return shift(list)
	}
	return slices.Delete(list, i, i+1)
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

// listsOwn reports whether a contender of this process is in the list.
func (v *directoryView) listsOwn() bool { return len(v.contenders) > v.foreign }

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

// own yields the entries of this process's contenders in a list.
func own(list []*contender) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, c := range list {
			if c.entry != nil && !yield(c.entry) {
				return
			}
		}
	}
}

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

// enterDirectory notes the directory that an answer is about, which is 0 if the answer does not
// say. It returns false for a former directory. What was known of a former directory does not hold
// for the next, and a node that was made before the next directory is not in it.
func (s *State) enterDirectory(directory int64) bool {
	if directory <= s.directory {
		return directory == s.directory
	}
	s.directory, s.lastDeleted, s.numbers = directory, nil, newNumbers()
	for _, e := range s.forget() {
		switch {
		case !e.answered():
			e.name = "" // a list showed the node before its Created: it was in the deleted directory
		case e.token.Czxid < directory:
			s.ownNodeDeleted(e)
		default: // made since, in this directory or one that comes after it
			e.inDirectory = false
			s.addAnew(e)
		}
	}
	return true
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

// follows reports whether a sequence number is the next one after completeThrough.
func (v *directoryView) follows(seq int64) bool { return seq == v.completeThrough+1 }
