package lockqueue

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// contender is a node in the lock's directory, as this process has last seen it: one of any
// process. There may be many.
type contender struct {
	name string
	// seq is the contender's place in the queue: its number (see parse), or unknownSeq for a name
	// of no known form.
	seq  int64
	kind queue.Kind
	// listed reports whether the contender is in directoryView.contenders, and inDirectory whether
	// its node is known to be in the present directory. Of another process's contender a list has shown
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

// nothingKnown is completeThrough before the first list, less than each number.
const nothingKnown int64 = math.MinInt64 + 1

// unknownSeq is the number of a child without one in its name. It is never beyond completeThrough.
const unknownSeq = nothingKnown - 1

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

func remove(list []*contender, c *contender) []*contender {
	for i := place(list, c.seq); i < len(list); i++ {
		if list[i] == c {
			return removeAt(list, i)
		}
	}
	return list
}

// removeAt removes the element at an index. The usual departure is one of the first. From a long list it
// moves those before it, and a short list keeps its memory.
func removeAt[T any](list []*T, i int) []*T {
	const long = 64
	if len(list) < long || i >= len(list)/2 {
		return slices.Delete(list, i, i+1)
	}
	copy(list[1:], list[:i])
	list[0] = nil
	return list[1:]
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

// entry is a contender of this process, from the first request for it until its node is deleted
// and its requests have ended. A variable e is an entry, c a contender of any process, ev an event.
type entry struct {
	contender
	stage stage
	// ending is how its last request has ended.
	ending ending
	// listAfter reports whether its CreateNode has ListAfter.
	listAfter bool
	// recent reports whether its Created was Recent.
	recent bool
	// mayBeDeleted reports whether a transaction that deletes its node may have been executed
	// already. A DeleteNode that finds no node then does not show that another client deleted it.
	mayBeDeleted bool
	// revocable sets a watch on the node from the grant on, and revoked reports whether another
	// client has asked for the lock.
	revocable, revoked bool
	// atomic reports whether an atomic create makes the node: see Acquire.
	atomic bool
	// repeats is how often it has queued again, at most requests.MaxRepeats.
	repeats uint8

	downgrade downgrade
	// token is set from the Created on. The token of a downgrade is that of the entry beside which
	// it was made.
	token requests.Token
	// serial is the serial of its CreateNode, and the key in State.entries; 0 before the first.
	serial uint64
	// sentAt is the clock of its CreateNode, and createdAt the clock of its Created. createdAt is 0
	// before that, and sentAt <= createdAt after it.
	sentAt, createdAt uint64

	owner    string
	data     string
	requests []request
	buf      [1]request // the memory of requests, if there is only one
	// link is the place in State.unsent or, until its CreateNode is answered, in State.unanswered.
	link requests.Element[entry]
}

// stage is how far an entry has come in its life.
type stage uint8

const (
	unsent       stage = iota
	creating           // its CreateNode is not answered
	abandoned          // its CreateNode is not answered, and it has no requests any more
	created            // its CreateNode has just been answered; lasts only within the event
	queued             // its node is in the queue, and it may not hold yet
	makingMarker       // it may hold once its held marker is made
	held
	leaving // its DeleteNode is not answered, or it has left without a node to delete
)

// ending is how the last request of an entry has ended.
type ending uint8

const (
	clean     ending = iota // it has not ended, or nothing follows
	unclean                 // by a Cancel that is Unclean: the held marker stays
	releasing               // by a Release, which is answered at the end of the node: see noteRelease
)

// downgrade is what an entry has to do with downgrades.
type downgrade struct {
	// of is the held entry of the same owner beside which this one is created, until its CreateNode
	// is answered.
	of *entry
	// made reports whether there ever was an of: then the number does not say when the node came.
	made bool
	// pending counts the entries that have this one as their of. The entry does not leave while
	// there are any.
	pending int16
}

// request is one request for an entry. A further request of its owner shares the entry.
type request struct {
	id              requests.ID
	try             bool
	notifyContended bool // once the entry holds: see Acquire.NotifyContended
}

// owner is the key of an owner's entry of one kind.
type owner struct {
	name string
	kind queue.Kind
}

// newEntry returns an entry without a node.
func newEntry(kind queue.Kind) *entry {
	e := &entry{contender: contender{kind: kind}}
	e.entry = e
	return e
}

func ownerOf(e *entry) owner { return owner{e.owner, e.kind} }

// answered reports whether the CreateNode of an entry that has one is answered.
func (e *entry) answered() bool { return e.stage > abandoned }

func (e *entry) hasTry() bool {
	return slices.ContainsFunc(e.requests, func(r request) bool { return r.try })
}

func (e *entry) wantsContention() bool {
	return e.stage == held && slices.ContainsFunc(e.requests, func(r request) bool { return r.notifyContended })
}

// index returns the place of a request. An owner that enters again leaves in reverse order.
func (e *entry) index(id requests.ID) int {
	if last := len(e.requests) - 1; e.requests[last].id == id {
		return last
	}
	return slices.IndexFunc(e.requests, func(r request) bool { return r.id == id })
}

// noteRelease notes the request whose release ends the entry. The entry has no requests any more,
// so their memory serves: there may be many entries.
func (e *entry) noteRelease(by requests.ID) { e.ending, e.buf[0].id = releasing, by }

func (e *entry) releaser() requests.ID { return e.buf[0].id }

// put writes to a map, and makes the map first if there is none.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}
