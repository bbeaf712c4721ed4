package queue

// Kind is what a contender wants, as far as the rule is concerned.
type Kind uint8

// The kinds of the recipes here. A rule may give others a meaning of its own.
const (
	Exclusive Kind = iota
	Shared
	// Own is a kind that no name is read as: only contenders of this process have it.
	Own
)

// KindSet is a set of kinds.
type KindSet uint64

// Kinds makes a set.
func Kinds(kinds ...Kind) KindSet {
	var s KindSet
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has tells whether k is in the set.
func (s KindSet) Has(k Kind) bool { return s>>k&1 == 1 }

// Rule is a recipe: of the contenders ahead of me, take those that block my kind; I
// hold if they are fewer than Permits.
type Rule struct {
	// Permits is how many may hold beside each other if they block each other.
	Permits int
	// BlockedBy gives for each kind those that it has to wait for.
	BlockedBy []KindSet
	// Markers gives for each kind what its nodes' names have between the unique
	// part and the sequence number: "-lock-".
	Markers []string
	// Reenter gives for each kind those under which its owner is let in at once
	// while it holds them: of the same kind, on the same node; of another, on a node
	// of its own at the same place in the queue (a downgrade). Who asks for what only
	// its own release could give is refused. Empty: nobody is let in so.
	Reenter []KindSet
	// Delay makes a holder that was not released cleanly keep the next one waiting.
	// It is for rules that let one contender in at a time.
	Delay bool
	// Strangers block: children of the directory whose names are of no known form count
	// as Exclusive contenders that came first. (One that comes when a contender waits
	// already may be missed by that one, as if it stood behind.) Otherwise they are
	// ignored.
	CountUnknown bool
	// Private has only names with the rule's own Markers taken for contenders. Else
	// those of other libraries are, too, as Exclusive or Shared: see Parse.
	OwnMarkersOnly bool
}

// Mutex lets one contender in at a time.
func Mutex() Rule { return Semaphore(1) }

// Semaphore lets permits contenders in at a time.
func Semaphore(permits int) Rule {
	all := Kinds(Exclusive, Shared)
	return Rule{
		Permits:   permits,
		BlockedBy: []KindSet{Exclusive: all, Shared: all},
		Markers:   []string{Exclusive: "-lock-"},
		Reenter:   []KindSet{Exclusive: Kinds(Exclusive)},
	}
}

// Gate lets the contenders of one process in beside each other, if they ask for Own,
// as if they were one contender of a Mutex: to others they are. The process has to
// see to the order among its own.
func RequestQueue() Rule {
	all := Kinds(Exclusive, Shared, Own)
	return Rule{
		Permits:   1,
		BlockedBy: []KindSet{Exclusive: all, Shared: all, Own: Kinds(Exclusive, Shared)},
		Markers:   []string{Exclusive: "-lock-", Shared: "-lock-", Own: "-lock-"},
	}
}

// Leases lets permits contenders in at a time, and any child of the directory takes
// one, as with Curator's InterProcessSemaphoreV2.
func Leases(permits int) Rule {
	r := Semaphore(permits)
	r.Markers, r.CountUnknown = []string{Exclusive: "-lease-"}, true
	return r
}

// ReadWrite lets many Shared or one Exclusive contender in. Who holds it exclusively
// may share it, too, and keeps its place when it then gives up the former.
func ReadWrite() Rule {
	return Rule{
		Permits:   1,
		BlockedBy: []KindSet{Exclusive: Kinds(Exclusive, Shared), Shared: Kinds(Exclusive)},
		Markers:   []string{Exclusive: "-__WRIT__", Shared: "-__READ__"},
		Reenter:   []KindSet{Exclusive: Kinds(Exclusive), Shared: Kinds(Exclusive, Shared)},
	}
}

// SimpleReadWrite is ReadWrite without a way from the one to the other.
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

// Downgrades tells that who holds one kind may come to hold another by a node of its own
// at the same place in the queue.
func (r Rule) Downgrades() bool {
	for kind := range r.Reenter {
		if r.Follows(Kind(kind)) {
			return true
		}
	}
	return false
}

// Follows reports whether a holder of another kind may come to hold this kind, by a node
// of its own at the same place in the queue and with the token that it has.
func (r Rule) Follows(kind Kind) bool { return r.EntersFrom(kind)&^Kinds(kind) != 0 }

// Holds applies the rule to a contender of a kind and those that are ahead of it, first come
// first. Of who is not in the queue it says nothing: its own node must be there.
func (r Rule) Holds(ahead []Kind, kind Kind) bool {
	return len(r.Blockers(nil, len(ahead), kind, func(i int) Kind { return ahead[i] }, r.Permits)) < r.Permits
}

// Blockers appends the places before i that block kind, nearest first, but not more
// than most. If it has to wait, it is the departure of the first Permits of them that may
// let it in. To watch fewer loses wake-ups; to watch more wakes for nothing.
func (r Rule) Blockers(to []int, i int, kind Kind, kindAt func(int) Kind, most int) []int {
	set := r.BlockedBy[kind]
	for j := i - 1; j >= 0 && len(to) < most; j-- {
		if set.Has(kindAt(j)) {
			to = append(to, j)
		}
	}
	return to
}
