package queue

// Kind is how a contender uses the lock, for example as a reader.
type Kind uint8

// The kinds of the recipes here. Another rule may number kinds of its own.
const (
	Exclusive Kind = iota
	Shared
	// Own is what RequestQueue has this process's contenders ask for. Parse never returns it: to
	// other processes, the same node is Exclusive.
	Own
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

// Rule is a recipe: of the contenders ahead of me, take those that block my kind; I hold if they
// are fewer than Permits.
type Rule struct {
	// Permits is how many may hold beside each other if they block each other.
	Permits int
	// BlockedBy holds for each kind the kinds that it has to wait for.
	BlockedBy []KindSet
	// Markers holds for each kind what the names of its nodes have between the unique part and the
	// sequence number, for example "-lock-".
	Markers []string
	// Reenter holds for each kind that is asked for the kinds of which one must be held already
	// for the owner to be let in at once. By the same kind the owner enters on the same node. By
	// another kind it gets a second node at the same place in the queue: a downgrade. An empty
	// Reenter lets no owner in again. (An owner's request that waits for the owner's own release
	// is refused.)
	Reenter []KindSet
	// Delay keeps the next holder waiting after a holder that did not release cleanly. The rule
	// must let one contender in at a time.
	Delay bool
	// CountUnknown has children of the directory whose names are of no known form count as
	// Exclusive contenders that came first. Otherwise they are ignored. (Their names do not say
	// when they came: for a contender that waits already, a new one may count as behind it.)
	CountUnknown bool
	// OwnMarkersOnly has only names with the rule's own Markers count as contenders. Otherwise
	// those of other libraries do, too, as Exclusive or Shared: see Parse.
	OwnMarkersOnly bool
}

// Mutex returns the rule that lets one contender in at a time.
func Mutex() Rule { return Semaphore(1) }

// Semaphore returns the rule that lets permits contenders in at a time.
func Semaphore(permits int) Rule {
	all := Kinds(Exclusive, Shared)
	return Rule{
		Permits:   permits,
		BlockedBy: []KindSet{Exclusive: all, Shared: all},
		Markers:   []string{Exclusive: "-lock-"},
		Reenter:   []KindSet{Exclusive: Kinds(Exclusive)},
	}
}

// RequestQueue returns the rule of a semaphore's request queue. Contenders of one process that ask
// for Own hold beside each other, as if they were one contender of a Mutex: to other processes they
// are. The process has to keep the order among its own.
func RequestQueue() Rule {
	all := Kinds(Exclusive, Shared, Own)
	return Rule{
		Permits:   1,
		BlockedBy: []KindSet{Exclusive: all, Shared: all, Own: Kinds(Exclusive, Shared)},
		Markers:   []string{Exclusive: "-lock-", Shared: "-lock-", Own: "-lock-"},
	}
}

// Leases returns the rule of a semaphore's leases: it lets permits contenders in at a time, and any
// child of the directory takes one permit, as with Curator's InterProcessSemaphoreV2.
func Leases(permits int) Rule {
	r := Semaphore(permits)
	r.Markers, r.CountUnknown = []string{Exclusive: "-lease-"}, true
	return r
}

// ReadWrite returns the rule that lets many Shared or one Exclusive contender in. An owner that
// holds the lock exclusively may share it, too, and keeps its place when it then releases the
// exclusive one.
func ReadWrite() Rule {
	return Rule{
		Permits:   1,
		BlockedBy: []KindSet{Exclusive: Kinds(Exclusive, Shared), Shared: Kinds(Exclusive)},
		Markers:   []string{Exclusive: "-__WRIT__", Shared: "-__READ__"},
		Reenter:   []KindSet{Exclusive: Kinds(Exclusive), Shared: Kinds(Exclusive, Shared)},
	}
}

// SimpleReadWrite returns ReadWrite without a downgrade.
func SimpleReadWrite() Rule {
	r := ReadWrite()
	r.Reenter = []KindSet{Exclusive: Kinds(Exclusive), Shared: Kinds(Shared)}
	return r
}

// EntersFrom returns the kinds under which an owner that holds the lock is let in as kind at
// once: the kind itself, and those that may be downgraded to it.
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
		if r.Follows(Kind(kind)) {
			return true
		}
	}
	return false
}

// Follows reports whether kind is one that a downgrade leads to: a holder of another kind may
// come to hold it, with the token that it has.
func (r Rule) Follows(kind Kind) bool { return r.EntersFrom(kind)&^Kinds(kind) != 0 }

// Holds reports whether a contender of a kind holds behind the contenders ahead, first come first.
// The caller must have checked that the contender's own node exists.
func (r Rule) Holds(ahead []Kind, kind Kind) bool {
	return len(r.Blockers(nil, len(ahead), kind, func(i int) Kind { return ahead[i] }, r.Permits)) < r.Permits
}

// Blockers appends to the slice "to" the places before i that block kind, nearest first, up to
// "most" of them. A contender that has to wait may be let in by the departure of any of the
// first Permits of them: to watch fewer loses wake-ups, to watch more wakes for nothing.
func (r Rule) Blockers(to []int, i int, kind Kind, kindAt func(int) Kind, most int) []int {
	set := r.BlockedBy[kind]
	for j := i - 1; j >= 0 && len(to) < most; j-- {
		if set.Has(kindAt(j)) {
			to = append(to, j)
		}
	}
	return to
}
