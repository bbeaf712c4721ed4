package queue

// Kind is how a contender uses the lock, for example as a reader. It indexes the slices of a Rule.
// The Acquire of an owner outside of this library has the numbers of messages.Kind instead, which
// the lock's actor translates.
type Kind uint8

// The kinds of the recipes here. Another rule may number kinds of its own.
const (
	Exclusive Kind = iota
	Shared
	// ProcessExclusive is a kind of the rule RequestQueue. It excludes contenders of other
	// processes, and lets those of one process hold beside each other. Parse never returns it: to
	// other processes, the same node is Exclusive.
	ProcessExclusive
)

// KindSet is a set of kinds.
type KindSet uint64

// Kinds returns the set of the given kinds.
func Kinds(kinds ...Kind) KindSet {
	var s KindSet
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has reports whether k is in the set.
func (s KindSet) Has(k Kind) bool { return s>>k&1 == 1 }

// Rule decides for a recipe which contenders hold: a contender holds if fewer than Permits of the
// contenders ahead of it block its kind.
type Rule struct {
	// Permits is how many contenders may hold at a time if their kinds block each other.
	Permits int
	// BlockedBy holds for each kind the kinds that block it.
	BlockedBy []KindSet
	// Markers holds for each kind what the names of its nodes have between the unique part and the
	// sequence number, for example "-lock-".
	Markers []string
	// Reenter holds for each kind the set of kinds from which an owner enters: an owner that holds
	// one of them gets this kind at once. From the same kind it enters on the same node. From
	// another kind it gets a second node at the same place in the queue: a downgrade. An empty
	// Reenter lets no owner in again.
	Reenter []KindSet
	// Delay keeps the next holder waiting after a holder that did not release cleanly. The rule
	// must let one contender in at a time.
	Delay bool
	// CountUnknown counts children of the directory whose names have no known form as Exclusive
	// contenders at the front of the queue. A contender that waits already may not notice such a
	// child that comes later. A rule without CountUnknown ignores all such children.
	CountUnknown bool
	// OwnMarkersOnly limits the contenders to names with the rule's own Markers. Otherwise the
	// names of other libraries count, too, as Exclusive or Shared: see Parse.
	OwnMarkersOnly bool
}

// Mutex returns the rule that lets one contender in at a time.
func Mutex() Rule { return Semaphore(1) }

// Semaphore returns the rule of a lock with this number of permits: as many contenders hold at a
// time. It creates Exclusive nodes only. Shared nodes are those of other libraries in its
// directory: they take a permit, too.
func Semaphore(permits int) Rule {
	all := Kinds(Exclusive, Shared)
	return Rule{
		Permits:   permits,
		BlockedBy: []KindSet{Exclusive: all, Shared: all},
		Markers:   []string{Exclusive: LockMarker},
		Reenter:   []KindSet{Exclusive: Kinds(Exclusive)},
	}
}

// RequestQueue returns the rule of a semaphore's request queue, in which its requests wait for
// their turn to take leases. To other processes it is a Mutex. The contenders of this library are
// all ProcessExclusive: those of one process hold beside each other, and the process has to keep
// the order among them.
func RequestQueue() Rule {
	all := Kinds(Exclusive, Shared, ProcessExclusive)
	return Rule{
		Permits:   1,
		BlockedBy: []KindSet{Exclusive: all, Shared: all, ProcessExclusive: Kinds(Exclusive, Shared)},
		Markers:   []string{Exclusive: LockMarker, Shared: LockMarker, ProcessExclusive: LockMarker},
	}
}

// Leases returns the rule of a semaphore's leases: as many contenders as permits hold at a time,
// and any child of the directory takes one permit, as with Curator's InterProcessSemaphoreV2.
func Leases(permits int) Rule {
	r := Semaphore(permits)
	r.Markers, r.CountUnknown = []string{Exclusive: LeaseMarker}, true
	return r
}

// ReadWrite returns the rule that lets many Shared or one Exclusive contender in. An owner that
// holds the lock as Exclusive may enter it as Shared, too: it then keeps its place in the queue
// when it releases the Exclusive grant.
func ReadWrite() Rule {
	return Rule{
		Permits:   1,
		BlockedBy: []KindSet{Exclusive: Kinds(Exclusive, Shared), Shared: Kinds(Exclusive)},
		Markers:   []string{Exclusive: "-" + WriteMarker, Shared: "-" + ReadMarker},
		Reenter:   []KindSet{Exclusive: Kinds(Exclusive), Shared: Kinds(Exclusive, Shared)},
	}
}

// EntersFrom returns Reenter of kind: the set of kinds from which an owner enters as kind.
func (r Rule) EntersFrom(kind Kind) KindSet {
	if int(kind) < len(r.Reenter) {
		return r.Reenter[kind]
	}
	return 0
}

// Downgrades reports whether a holder of one kind may come to hold another by a node of its own at
// the same place in the queue.
func (r Rule) Downgrades() bool {
	for kind := range r.Reenter {
		if r.DowngradesTo(Kind(kind)) {
			return true
		}
	}
	return false
}

// DowngradesTo reports whether a holder of another kind may come to hold kind by a downgrade, with
// the token of the grant that it has.
func (r Rule) DowngradesTo(kind Kind) bool { return r.EntersFrom(kind)&^Kinds(kind) != 0 }

// Census counts contenders by kind. It has a number for each kind of a Rule.
type Census []int

// NewCensus returns a Census that counts nothing yet, for the kinds of the rule.
func (r Rule) NewCensus() Census { return make(Census, len(r.BlockedBy)) }

// Count returns the number of contenders of the kinds in a set.
func (c Census) Count(kinds KindSet) (n int) {
	for kind, of := range c {
		if kinds.Has(Kind(kind)) {
			n += of
		}
	}
	return n
}

// Holds reports whether a contender of a kind holds behind the contenders ahead. The caller must
// have checked that the contender's own node exists.
func (r Rule) Holds(ahead Census, kind Kind) bool { return ahead.Count(r.BlockedBy[kind]) < r.Permits }
