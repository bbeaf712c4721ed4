package simulation

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// plan lists the operations and faults of a run. Each entry has a seed of its own, so that the
// other entries do not change when one is left out.
type plan struct {
	seed           uint64
	kind           planKind
	length         time.Duration
	drawnLength    time.Duration // the length for which the entries were drawn
	processes      int
	servers        int // more than one: an ensemble, in which each server has a state of its own
	election       bool
	sessionTimeout time.Duration
	version        string // of the server, as embedded.ServerConfig has it; empty for ZooKeeper
	entries        []entry

	farChance             float64         // how likely a client is far from the server
	maxDelays             []time.Duration // the greatest delay of each process; nil: farChance decides
	unlimited             bool            // no process has limits on its requests
	foreignClients        int             // clients of other libraries
	optionChance          float64         // how likely a request has an option, or is cancelled
	meanHold              time.Duration   // how long a grant is held on average
	memberForms, anyForms []int           // forms of locks: see memberLock and anyLock

	lockServers int           // how many of the first processes are lock servers; the others are their clients. 0: none has any
	lease       time.Duration // the longest lease of a lock server
	keepsLeases bool          // no fault may cost a client its grants
	sharedName  bool          // the name of a lock server leads to each of them in turn

	partitions int // of the group whose members the processes are; 0: there is none

	defect func(*simulation) // for tests of the simulation itself: called after each event
}

// keeperVersion is the server of TestKeeper.
const keeperVersion = "keeper-26.8"

// onKeeper reports whether the server is ClickHouse Keeper, which resumes no session.
func (p *plan) onKeeper() bool { return p.version != "" }

// entry is an operation or a fault.
type entry struct {
	id   int
	at   time.Duration
	name string // of the operation or fault
	slot int    // number of the process
	seed uint64
}

func (e entry) rand() *rand.Rand { return rand.New(rand.NewPCG(e.seed, 7)) }

func (e entry) isFault() bool { return !strings.HasPrefix(e.name, "op ") }

// newPlan draws a plan. Each seed has a random subset of operations and faults, each at one of
// several intervals. Some seeds have a targeted plan instead.
func newPlan(seed uint64, length time.Duration) *plan { return drawPlan(seed, length, withSessions) }

// newStreamPlan draws a plan with lock servers and their clients. It has nothing to do with the plan
// that newPlan draws for the seed.
func newStreamPlan(seed uint64, length time.Duration) *plan {
	return drawPlan(seed, length, withStreams)
}

// planKind is what the plans of a test have in common.
type planKind string

const (
	withSessions   planKind = "sessions"
	withStreams    planKind = "streams"
	withPartitions planKind = "partitions"
)

func drawPlan(seed uint64, length time.Duration, kind planKind) *plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &plan{seed: seed, kind: kind, length: length, drawnLength: length, processes: pick(r, []int{1, 2, 2, 3, 3, 4, 6, 8})}
	// No deadline may be a multiple of the second in which locks tick: timers of the same time fire
	// in a random order.
	p.sessionTimeout = []time.Duration{4037, 6041, 10053, 20071}[r.IntN(4)] * time.Millisecond
	p.farChance = pick(r, []float64{0, 0, 0.3, 0.7})
	p.optionChance = pick(r, []float64{0.1, 0.1, 0.6})
	p.meanHold = pick(r, []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond})
	p.memberForms = randomSubset(r, memberFormCount)
	p.anyForms = randomSubset(r, anyFormCount)
	if r.IntN(4) == 0 {
		p.anyForms = []int{anyFormCount - 1} // only locks of memberLock
	}
	kinds, groups := faults, faultGroups
	if kind == withStreams {
		p.drawLockServers(rand.New(rand.NewPCG(seed, 8)))
		kinds, groups = slices.Concat(faults, streamFaults, streamFaults), streamFaultGroups
	}
	p.drawOperations(r)
	p.drawFaults(r, kinds, groups)
	if r.IntN(2) == 0 && !slices.ContainsFunc(p.entries, func(e entry) bool { return e.name == "sequence" }) {
		p.foreignClients = 1 + r.IntN(3) // clients of other libraries are not safe near the end of the numbers
	}
	p.drawServers(rand.New(rand.NewPCG(seed, 4)))
	if seed%8 == 1 {
		p.draw(rand.New(rand.NewPCG(seed, 6)), []string{"sleep"}, 1, phase{time.Minute, 20 * time.Second}, time.Second, 5*time.Second)
	}
	p.drawCandidates(rand.New(rand.NewPCG(seed, 5)))
	switch kind {
	case withStreams:
		p.drawTargetedStreams()
	case withPartitions:
		p.drawGroup(rand.New(rand.NewPCG(seed, 11)))
	default:
		p.drawTargeted()
	}
	slices.SortFunc(p.entries, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	for i := range p.entries {
		p.entries[i].id = i
	}
	return p
}

// randomSubset returns one of the n numbers, so that all requests meet, or several.
func randomSubset(r *rand.Rand, n int) []int {
	if r.IntN(3) == 0 {
		return r.Perm(n)[:1]
	}
	return r.Perm(n)[:1+r.IntN(n)]
}

// drawOperations draws most operations for the whole run, or one operation very often for a part of
// each 20 s.
func (p *plan) drawOperations(r *rand.Rand) {
	if r.IntN(3) > 0 {
		p.draw(r, operations, 0.6, always, 300*time.Millisecond, time.Second, 3*time.Second, 10*time.Second)
		return
	}
	frequent := pick(r, []string{"op plain", "op plain", "op options", "op owner", "op multi", "op owner multi", "op actor"})
	p.draw(r, []string{frequent}, 1, phase{20 * time.Second, 6 * time.Second}, 25*time.Millisecond, 60*time.Millisecond, 150*time.Millisecond)
	p.draw(r, operations, 0.4, always, time.Second, 3*time.Second, 10*time.Second)
}

// faultGroups are faults that affect the same part of the library.
var faultGroups = [][]string{
	{"delete", "write"},                      // what is known of nodes
	{"request", "rights", "stale"},           // outcomes that are unknown
	{"sequence", "request", "cut"},           // order near the end of the numbers
	{"late", "slow", "hole", "freeze"},       // deadlines
	{"generation", "delete", "cut"},          // generations
	{"expire", "actor stops", "close"},       // ends of sessions, actors and processes
	{"server away", "cut", "delete", "hole"}, // reconnections
	{"drop", "expire", "close"},              // futures and grants that programs have dropped
	{"follower", "revoke", "session node"},   // what a process learns late
}

// drawFaults draws no faults, some of many kinds, or many of a few kinds.
func (p *plan) drawFaults(r *rand.Rand, faults []string, groups [][]string) {
	when := pick(r, []phase{always, {time.Minute, 15 * time.Second}})
	switch r.IntN(8) {
	case 0:
	case 1, 2, 3:
		p.draw(r, faults, 0.4, when, 5*time.Second, 20*time.Second, time.Minute)
	default:
		few := pick(r, groups)
		if r.IntN(2) == 0 {
			few = nil
			for _, i := range r.Perm(len(faults))[:1+r.IntN(2)] {
				few = append(few, faults[i])
			}
		}
		p.draw(r, few, 0.8, when, 300*time.Millisecond, time.Second, 3*time.Second)
		p.draw(r, faults, 0.1, always, 10*time.Second, time.Minute)
	}
}

// phase is the part of each period in which entries of a kind come. The rest of the period shows
// what follows from them.
type phase struct{ period, part time.Duration }

var always = phase{time.Second, time.Second}

// draw selects a random subset of the names, and adds entries for each at one of the intervals,
// within its phase.
func (p *plan) draw(r *rand.Rand, kinds []string, chance float64, when phase, intervals ...time.Duration) {
	for _, kind := range kinds {
		seed, on := r.Uint64(), r.Float64() < chance
		own := rand.New(rand.NewPCG(seed, 2))
		every := pick(own, intervals)
		if !on && kind != operations[0] {
			continue
		}
		for active := time.Duration(0); ; {
			active += time.Duration(own.ExpFloat64() * float64(every))
			at := active/when.part*when.period + active%when.part
			if at >= p.length {
				break
			}
			p.entries = append(p.entries, entry{at: at, name: kind, slot: own.IntN(p.processes), seed: own.Uint64()})
			if own.IntN(10) == 0 {
				p.burst(own, at, kind)
			}
		}
	}
}

// burst adds more entries of a name at one moment or a little later, of one process or of several.
func (p *plan) burst(r *rand.Rand, at time.Duration, kind string) {
	spread := pick(r, []time.Duration{1, time.Millisecond, 100 * time.Millisecond})
	slot, one := r.IntN(p.processes), r.IntN(2) == 0
	for range 1 + r.IntN(10) {
		if !one {
			slot = r.IntN(p.processes)
		}
		p.entries = append(p.entries, entry{at: at + time.Duration(r.Int64N(int64(spread))), name: kind, slot: slot, seed: r.Uint64()})
	}
}

func (p *plan) String() string {
	ops, faults := map[string]int{}, map[string]int{}
	for _, e := range p.entries {
		if e.isFault() {
			faults[e.name]++
		} else {
			ops[e.name]++
		}
	}
	return fmt.Sprintf("seed %d: %v, %d processes, %d lock servers with leases of %v, %d servers, %d foreign, %.1f far, hold %v, forms %v %v, sessions of %v, %v, %v", p.seed, p.length, p.processes, p.lockServers, p.lease, p.servers, p.foreignClients, p.farChance, p.meanHold, p.memberForms, p.anyForms, p.sessionTimeout, ops, faults)
}
