// Package queue decides who holds a lock: pure functions over the contenders in a
// lock's directory, ordered by their sequence numbers. It does no I/O and knows
// neither time nor contexts; what happens comes in as events, what is to be done
// goes out as effects.
//
// Decide is the rule, Step the life of a lock.
package queue

// Kind is what a contender wants, as far as the rule is concerned.
type Kind uint8

// The kinds of the recipes here. A rule may give others a meaning of its own.
const (
	Exclusive Kind = iota
	Shared
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
	}
}

// ReadWrite lets many Shared or one Exclusive contender in.
func ReadWrite() Rule {
	return Rule{
		Permits:   1,
		BlockedBy: []KindSet{Exclusive: Kinds(Exclusive, Shared), Shared: Kinds(Exclusive)},
		Markers:   []string{Exclusive: "-__WRIT__", Shared: "-__READ__"},
	}
}

// Verdict is what the rule says of one contender.
type Verdict uint8

// Gone is the verdict on a contender that is not in the queue: it never holds.
const (
	Gone Verdict = iota
	Waiting
	Held
)

// Decide applies the rule to the contender at place i of the kinds in the queue,
// first come first. If it has to wait, blockers are the places of those whose
// departure may let it in, nearest first: the last Permits of those that block it.
// Watching fewer of them loses wake-ups; watching more wakes for nothing.
//
// A place outside the queue, such as the -1 of a search that found nothing, is Gone.
func (r Rule) Decide(kinds []Kind, i int) (v Verdict, blockers []int) {
	if i < 0 || i >= len(kinds) {
		return Gone, nil
	}
	blockers = r.blockers(nil, i, kinds[i], func(j int) Kind { return kinds[j] }, r.Permits)
	if len(blockers) < r.Permits {
		return Held, nil
	}
	return Waiting, blockers
}

// blockers appends the places before i that block kind, nearest first, but not more
// than most.
func (r Rule) blockers(to []int, i int, kind Kind, kindAt func(int) Kind, most int) []int {
	set := r.BlockedBy[kind]
	for j := i - 1; j >= 0 && len(to) < most; j-- {
		if set.Has(kindAt(j)) {
			to = append(to, j)
		}
	}
	return to
}
