package simulation

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// plan is all that is to happen of itself. Each entry has a seed of its own, so that the
// others stay as they are when one is left out.
type plan struct {
	seed      uint64
	length    time.Duration
	processes int
	session   time.Duration
	entries   []entry

	foreign        int   // clients of other libraries
	members, alone []int // forms of locks, see town

	defect func(*world) // nil but in tests of the simulation: it is called at each step
}

// entry is an operation or a fault.
type entry struct {
	id   int
	at   time.Duration
	what string // an operation's or a fault's name
	slot int    // of the process
	seed uint64
}

func (e entry) rand() *rand.Rand { return rand.New(rand.NewPCG(e.seed, 7)) }

func (e entry) isFault() bool { return !strings.HasPrefix(e.what, "op ") }

// newPlan draws a plan: how many processes, which operations and faults, and how dense.
func newPlan(seed uint64, length time.Duration) *plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &plan{seed: seed, length: length, processes: 2 + r.IntN(7)}
	// No deadline is to be a multiple of the second in which locks tick: timers of one time
	// fire in a random order.
	p.session = []time.Duration{4037, 6041, 10053, 20071}[r.IntN(4)] * time.Millisecond
	p.members = r.Perm(memberForms)[:1+r.IntN(memberForms)]
	p.alone = r.Perm(aloneForms)[:1+r.IntN(aloneForms)]
	p.draw(r, opKinds, 0.6, []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second})
	if r.IntN(8) > 0 {
		p.draw(r, faultKinds, 0.4, []time.Duration{5 * time.Second, 20 * time.Second, time.Minute})
	}
	if r.IntN(2) == 0 && !slices.ContainsFunc(p.entries, func(e entry) bool { return e.what == "sequence" }) {
		p.foreign = 1 + r.IntN(3) // at the end of the numbers they are not safe
	}
	slices.SortFunc(p.entries, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	for i := range p.entries {
		p.entries[i].id = i
	}
	return p
}

// draw switches a random subset of the kinds on, each as dense as one of the intervals.
func (p *plan) draw(r *rand.Rand, kinds []string, chance float64, intervals []time.Duration) {
	for _, kind := range kinds {
		seed, on := r.Uint64(), r.Float64() < chance
		own := rand.New(rand.NewPCG(seed, 2))
		every := intervals[own.IntN(len(intervals))]
		if !on && kind != opKinds[0] {
			continue
		}
		for at := time.Duration(0); ; {
			at += time.Duration(own.ExpFloat64() * float64(every))
			if at >= p.length {
				break
			}
			p.entries = append(p.entries, entry{at: at, what: kind, slot: own.IntN(p.processes), seed: own.Uint64()})
			if own.IntN(10) == 0 { // a burst
				for range 1 + own.IntN(10) {
					p.entries = append(p.entries, entry{at: at, what: kind, slot: own.IntN(p.processes), seed: own.Uint64()})
				}
			}
		}
	}
}

func (p *plan) String() string {
	ops, faults := map[string]int{}, map[string]int{}
	for _, e := range p.entries {
		if e.isFault() {
			faults[e.what]++
		} else {
			ops[e.what]++
		}
	}
	return fmt.Sprintf("seed %d: %v, %d processes, %d foreign, sessions of %v, %v, %v", p.seed, p.length, p.processes, p.foreign, p.session, ops, faults)
}
