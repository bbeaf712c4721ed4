package simulation

import (
	"math/rand/v2"
	"slices"
	"time"
)

// targetedOneIn says how often a seed has a targeted plan: one seed in so many.
const targetedOneIn = 4

// targetedPlans each draw a plan in which one rare history is likely. The comments name that
// history.
var targetedPlans = []func(p *plan, r *rand.Rand){
	// A reader of another process leaves unnoticed, and then a Try comes for the writer.
	func(p *plan, r *rand.Rand) {
		p.processes, p.anyForms, p.memberForms, p.optionChance = 2, membersOnly, []int{r.IntN(2)}, 0
		p.draw(r, []string{"op plain"}, 1, always, time.Second, 3*time.Second)
		p.draw(r, []string{"op readers"}, 1, always, 3*time.Second)
	},
	// Several requests of one process have leases, and one of them loses a lease.
	func(p *plan, r *rand.Rand) {
		p.processes, p.meanHold, p.anyForms, p.optionChance = 1+r.IntN(2), 500*time.Millisecond, []int{4}, 0
		p.draw(r, []string{"op plain"}, 1, always, 150*time.Millisecond, 400*time.Millisecond)
		p.draw(r, []string{"lease"}, 1, phase{time.Minute, 15 * time.Second}, 100*time.Millisecond, time.Second)
	},
	// A transaction creates one node in an existing directory and one in a missing directory.
	func(p *plan, r *rand.Rand) {
		p.processes, p.farChance, p.meanHold = 1+r.IntN(2), 0.7, 5*time.Millisecond
		p.anyForms, p.memberForms = membersOnly, []int{0}
		p.draw(r, []string{"op plain"}, 1, always, time.Second, 3*time.Second)
		p.draw(r, []string{"op missing"}, 1, always, time.Second, 3*time.Second)
	},
	// The session node is deleted while several transactions are in flight.
	func(p *plan, r *rand.Rand) {
		p.processes, p.farChance, p.optionChance, p.anyForms, p.memberForms = 1, 1, 0, membersOnly, []int{1}
		p.draw(r, []string{"op plain"}, 1, always, 10*time.Second)
		p.draw(r, []string{"op four"}, 1, always, 10*time.Second)
	},
	// A future that requests a lock has timed out before the grant.
	func(p *plan, r *rand.Rand) {
		p.draw(r, []string{"op plain"}, 1, always, 300*time.Millisecond, time.Second)
		p.draw(r, []string{"op future"}, 1, always, 300*time.Millisecond, time.Second)
		p.draw(r, []string{"cut", "expire"}, 0.3, phase{time.Minute, 15 * time.Second}, time.Second)
	},
	// A directory is replaced between a release and the next create, whose node has the same number
	// in the new directory.
	func(p *plan, r *rand.Rand) {
		p.processes, p.meanHold = 1+r.IntN(3), 5*time.Millisecond
		p.anyForms, p.memberForms = membersOnly, []int{r.IntN(2)}
		p.draw(r, []string{"op plain"}, 1, always, time.Second, 3*time.Second)
		p.draw(r, []string{"replace"}, 1, always, time.Second, 3*time.Second)
	},
	// Near the end of the numbers, the answer to a create is lost, and another create is answered
	// before the first node is found.
	func(p *plan, r *rand.Rand) {
		p.processes, p.farChance, p.meanHold = 1+r.IntN(2), 0.7, 5*time.Millisecond
		p.anyForms, p.memberForms = membersOnly, []int{0}
		p.draw(r, []string{"op plain"}, 1, always, time.Second, 3*time.Second)
		p.draw(r, []string{"op lost"}, 1, always, 3*time.Second)
	},
	// Nodes are deleted while sessions end, because the generation is raised.
	func(p *plan, r *rand.Rand) {
		p.processes, p.farChance, p.meanHold = 2+r.IntN(2), 1, 5*time.Millisecond
		p.anyForms, p.memberForms = membersOnly, []int{r.IntN(2)}
		p.draw(r, []string{"op plain"}, 1, always, 15*time.Millisecond, 40*time.Millisecond)
		p.draw(r, []string{"turn"}, 1, phase{time.Minute, 15 * time.Second}, 300*time.Millisecond, time.Second)
	},
	// A create was cancelled, or its answer is lost, and its node is made while the bridge looks
	// for the orphan. The process requests nothing else meanwhile, since any write would have the
	// delayed create executed first.
	func(p *plan, r *rand.Rand) {
		const period, asks = 100 * time.Second, 1500 * time.Millisecond
		p.processes, p.farChance, p.sessionTimeout = 2, 0.3, 4037*time.Millisecond
		p.anyForms, p.memberForms = membersOnly, []int{r.IntN(2)}
		p.draw(r, []string{"op plain"}, 1, always, 500*time.Millisecond, time.Second)
		p.entries = slices.DeleteFunc(p.entries, func(e entry) bool { return e.slot == 0 && e.at%period > asks })
		for at := 100 * time.Millisecond; at < p.length; at += period {
			p.entries = append(p.entries, entry{at: at, name: pick(r, []string{"unresolved", "held"}), seed: r.Uint64()})
		}
	},
	// A list that was requested before a create is read after it, when the new node is already
	// deleted.
	func(p *plan, r *rand.Rand) {
		p.processes, p.maxDelays, p.optionChance, p.anyForms, p.memberForms = 2, []time.Duration{100 * time.Millisecond, nearDelay}, 0, membersOnly, []int{0}
		p.meanHold, p.unlimited = 5*time.Millisecond, true
		p.draw(r, []string{"op plain"}, 1, always, 20*time.Second)
		p.draw(r, []string{"op list"}, 1, always, 5*time.Second)
	},
	// A process loses its session by its own clock, and is connected again at once.
	func(p *plan, r *rand.Rand) {
		p.processes, p.sessionTimeout = 2, pick(r, []time.Duration{10053, 20071})*time.Millisecond
		p.draw(r, []string{"op plain"}, 1, always, 20*time.Second)
		p.draw(r, []string{"op overdue"}, 1, always, 10*time.Second)
	},
	// The answer that would have kept a session comes after the deadline, while the actors are
	// frozen.
	func(p *plan, r *rand.Rand) {
		p.processes, p.meanHold, p.sessionTimeout, p.anyForms, p.memberForms = 2, 50*time.Millisecond, 4037*time.Millisecond, membersOnly, []int{0}
		p.draw(r, []string{"op plain"}, 1, always, 300*time.Millisecond)
		p.draw(r, []string{"still"}, 1, phase{time.Minute, 30 * time.Second}, 5*time.Second)
	},
	// A directory is replaced between a release and the next create, and the new directory cannot
	// be read.
	func(p *plan, r *rand.Rand) {
		p.processes, p.meanHold = 1+r.IntN(3), 5*time.Millisecond
		p.anyForms, p.memberForms = membersOnly, []int{r.IntN(2)}
		p.draw(r, []string{"op plain"}, 1, always, time.Second, 3*time.Second)
		p.draw(r, []string{"replace and hide"}, 1, always, 3*time.Second)
	},
	// An owner has lost the lock, has not released it, and requests it again.
	func(p *plan, r *rand.Rand) {
		p.draw(r, []string{"op plain"}, 1, always, 10*time.Second)
		p.draw(r, []string{"op owner lost"}, 1, always, 3*time.Second)
	},
	// Holders list the participants while several nodes of one transaction are near the end of the
	// numbers.
	func(p *plan, r *rand.Rand) {
		p.farChance, p.optionChance, p.memberForms, p.anyForms, p.unlimited = 0, 0, []int{1}, membersOnly, true
		p.draw(r, []string{"op plain"}, 1, always, 10*time.Second)
		p.draw(r, []string{"op observe"}, 1, always, 3*time.Second)
	},
}

// restoresOneIn says how often a seed has a plan of lostHistory: one seed in so many, from
// restoresFrom on.
const restoresOneIn, restoresFrom = 32, 19

// lostHistory draws a plan in which the servers come back from backups.
func lostHistory(p *plan, r *rand.Rand) {
	p.processes, p.sessionTimeout, p.optionChance, p.anyForms = 1+r.IntN(3), 4037*time.Millisecond, 0, membersOnly
	p.draw(r, []string{"op plain"}, 1, always, 300*time.Millisecond, time.Second, 3*time.Second)
	p.draw(r, []string{"restore"}, 1, always, 10*time.Second)
	p.draw(r, []string{"generation", "kill", "expire"}, 0.3, always, 20*time.Second)
}

// membersOnly is a value of anyForms for requests of memberLock only.
var membersOnly = []int{anyFormCount - 1}

// drawTargeted replaces the plan by a targeted one, for some of the seeds.
func (p *plan) drawTargeted() {
	draw := lostHistory
	switch {
	case p.seed%targetedOneIn == 0:
		draw = targetedPlans[p.seed/targetedOneIn%uint64(len(targetedPlans))]
	case p.seed%restoresOneIn != restoresFrom:
		return
	}
	r := rand.New(rand.NewPCG(p.seed, 3))
	p.entries, p.foreignClients, p.optionChance, p.farChance = nil, 0, 0.1, pick(r, []float64{0, 0.3, 0.7})
	draw(p, r)
}
