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
	drawn     time.Duration // length as it was when the entries were drawn
	processes int
	servers   int // an ensemble of so many, each with a state of its own
	election  bool
	session   time.Duration
	entries   []entry

	far            float64         // how likely a client is one that is far from the server
	away           []time.Duration // how far each process is, if it is set
	unlimited      bool            // no process bounds its requests
	foreign        int             // clients of other libraries
	fickle         float64         // how likely a request has an option, for example its end
	hold           time.Duration   // how long a grant is held, in the mean
	members, alone []int           // forms of locks, see town

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

// newPlan draws a plan. Every seed is different in kind: each has a random subset of operations
// and faults, as often as one of several intervals, and most have a focus.
func newPlan(seed uint64, length time.Duration) *plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &plan{seed: seed, length: length, drawn: length, processes: pick(r, []int{1, 2, 2, 3, 3, 4, 6, 8})}
	// No deadline is to be a multiple of the second in which locks tick: timers of one time
	// fire in a random order.
	p.session = []time.Duration{4037, 6041, 10053, 20071}[r.IntN(4)] * time.Millisecond
	p.far = pick(r, []float64{0, 0, 0.3, 0.7})
	p.fickle = pick(r, []float64{0.1, 0.1, 0.6})
	p.hold = pick(r, []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond})
	p.members = some(r, memberForms)
	p.alone = some(r, aloneForms)
	if r.IntN(4) == 0 {
		p.alone = []int{aloneForms - 1} // members only
	}
	p.drawOperations(r)
	p.drawFaults(r)
	if r.IntN(2) == 0 && !slices.ContainsFunc(p.entries, func(e entry) bool { return e.what == "sequence" }) {
		p.foreign = 1 + r.IntN(3) // at the end of the numbers they are not safe
	}
	p.drawServers(rand.New(rand.NewPCG(seed, 4)))
	p.drawCandidates(rand.New(rand.NewPCG(seed, 5)))
	p.concentrate()
	slices.SortFunc(p.entries, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	for i := range p.entries {
		p.entries[i].id = i
	}
	return p
}

// some returns one of n forms of locks, so that all requests meet, or several.
func some(r *rand.Rand, n int) []int {
	if r.IntN(3) == 0 {
		return r.Perm(n)[:1]
	}
	return r.Perm(n)[:1+r.IntN(n)]
}

// drawOperations draws operations of most kinds, or a crowd of them in a part of the time.
func (p *plan) drawOperations(r *rand.Rand) {
	if r.IntN(3) > 0 {
		p.draw(r, opKinds, 0.6, always, 300*time.Millisecond, time.Second, 3*time.Second, 10*time.Second)
		return
	}
	crowd := pick(r, []string{"op plain", "op plain", "op options", "op owner", "op multi", "op owner multi", "op actor"})
	p.draw(r, []string{crowd}, 1, phase{20 * time.Second, 6 * time.Second}, 25*time.Millisecond, 60*time.Millisecond, 150*time.Millisecond)
	p.draw(r, opKinds, 0.4, always, time.Second, 3*time.Second, 10*time.Second)
}

// themes are faults that meet in one part of the library.
var themes = [][]string{
	{"delete", "write"},                      // what is known of nodes
	{"request", "rights", "stale"},           // outcomes that are not known
	{"sequence", "request", "cut"},           // the order near the end of the numbers
	{"late", "slow", "hole", "freeze"},       // deadlines
	{"generation", "delete", "cut"},          // generations
	{"expire", "actor stops", "close"},       // ends
	{"server away", "cut", "delete", "hole"}, // reconnects
	{"drop", "expire", "close"},              // what programs have forgotten
	{"follower", "revoke", "session node"},   // what is known late
}

// drawFaults draws no faults, some of many kinds, or many of a few kinds.
func (p *plan) drawFaults(r *rand.Rand) {
	when := pick(r, []phase{always, {time.Minute, 15 * time.Second}})
	switch r.IntN(8) {
	case 0:
	case 1, 2, 3:
		p.draw(r, faultKinds, 0.4, when, 5*time.Second, 20*time.Second, time.Minute)
	default:
		few := pick(r, themes)
		if r.IntN(2) == 0 {
			few = nil
			for _, i := range r.Perm(len(faultKinds))[:1+r.IntN(2)] {
				few = append(few, faultKinds[i])
			}
		}
		p.draw(r, few, 0.8, when, 300*time.Millisecond, time.Second, 3*time.Second)
		p.draw(r, faultKinds, 0.1, always, 10*time.Second, time.Minute)
	}
}

// phase is the part of each period in which something happens. What happens in the rest is
// what follows.
type phase struct{ period, part time.Duration }

var always = phase{time.Second, time.Second}

// draw switches a random subset of the kinds on, each as dense in its phase as one of the
// intervals.
func (p *plan) draw(r *rand.Rand, kinds []string, chance float64, when phase, intervals ...time.Duration) {
	for _, kind := range kinds {
		seed, on := r.Uint64(), r.Float64() < chance
		own := rand.New(rand.NewPCG(seed, 2))
		every := pick(own, intervals)
		if !on && kind != opKinds[0] {
			continue
		}
		for active := time.Duration(0); ; {
			active += time.Duration(own.ExpFloat64() * float64(every))
			at := active/when.part*when.period + active%when.part
			if at >= p.length {
				break
			}
			p.entries = append(p.entries, entry{at: at, what: kind, slot: own.IntN(p.processes), seed: own.Uint64()})
			if own.IntN(10) == 0 {
				p.burst(own, at, kind)
			}
		}
	}
}

// burst draws more of a kind at a time or a little later, at one process or at any.
func (p *plan) burst(r *rand.Rand, at time.Duration, kind string) {
	spread := pick(r, []time.Duration{1, time.Millisecond, 100 * time.Millisecond})
	slot, one := r.IntN(p.processes), r.IntN(2) == 0
	for range 1 + r.IntN(10) {
		if !one {
			slot = r.IntN(p.processes)
		}
		p.entries = append(p.entries, entry{at: at + time.Duration(r.Int64N(int64(spread))), what: kind, slot: slot, seed: r.Uint64()})
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
	return fmt.Sprintf("seed %d: %v, %d processes, %d servers, %d foreign, %.1f far, hold %v, forms %v %v, sessions of %v, %v, %v", p.seed, p.length, p.processes, p.servers, p.foreign, p.far, p.hold, p.members, p.alone, p.session, ops, faults)
}
