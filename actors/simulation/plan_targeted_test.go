package simulation

import (
	"math/rand/v2"
	"slices"
	"time"
)

// focused is how many seeds there are for each that has a focus. The others have plans of all kinds.
const focused = 4

// foci are kinds of runs in which one rare history is likely. Each says what that is.
var foci = []func(p *plan, r *rand.Rand){
	// A reader of another process leaves unnoticed, and then a try comes for the writer.
	func(p *plan, r *rand.Rand) {
		p.processes, p.alone, p.members, p.fickle = 2, membersOnly, []int{r.IntN(2)}, 0
		p.draw(r, []string{"op plain"}, 1, always, time.Second, 3*time.Second)
		p.draw(r, []string{"op readers"}, 1, always, 3*time.Second)
	},
	// Several requests of one process have leases, and one of them loses one.
	func(p *plan, r *rand.Rand) {
		p.processes, p.hold, p.alone, p.fickle = 1+r.IntN(2), 500*time.Millisecond, []int{4}, 0
		p.draw(r, []string{"op plain"}, 1, always, 150*time.Millisecond, 400*time.Millisecond)
		p.draw(r, []string{"lease"}, 1, phase{time.Minute, 15 * time.Second}, 100*time.Millisecond, time.Second)
	},
	// A transaction creates in a directory that is there, and in one that is missing.
	func(p *plan, r *rand.Rand) {
		p.processes, p.far, p.hold = 1+r.IntN(2), 0.7, 5*time.Millisecond
		p.alone, p.members = membersOnly, []int{0}
		p.draw(r, []string{"op plain"}, 1, always, time.Second, 3*time.Second)
		p.draw(r, []string{"op missing"}, 1, always, time.Second, 3*time.Second)
	},
	// The session node is gone when several transactions are in flight.
	func(p *plan, r *rand.Rand) {
		p.processes, p.far, p.fickle, p.alone, p.members = 1, 1, 0, membersOnly, []int{1}
		p.draw(r, []string{"op plain"}, 1, always, 10*time.Second)
		p.draw(r, []string{"op four"}, 1, always, 10*time.Second)
	},
	// A future that asks for a lock has timed out when it is granted.
	func(p *plan, r *rand.Rand) {
		p.draw(r, []string{"op plain"}, 1, always, 300*time.Millisecond, time.Second)
		p.draw(r, []string{"op future"}, 1, always, 300*time.Millisecond, time.Second)
		p.draw(r, []string{"cut", "expire"}, 0.3, phase{time.Minute, 15 * time.Second}, time.Second)
	},
	// A directory is replaced between a release and the next create, which has the same number there.
	func(p *plan, r *rand.Rand) {
		p.processes, p.hold = 1+r.IntN(3), 5*time.Millisecond
		p.alone, p.members = membersOnly, []int{r.IntN(2)}
		p.draw(r, []string{"op plain"}, 1, always, time.Second, 3*time.Second)
		p.draw(r, []string{"replace"}, 1, always, time.Second, 3*time.Second)
	},
	// Near the end of the numbers, the answer to a create is lost, and another one comes before it is found.
	func(p *plan, r *rand.Rand) {
		p.processes, p.far, p.hold = 1+r.IntN(2), 0.7, 5*time.Millisecond
		p.alone, p.members = membersOnly, []int{0}
		p.draw(r, []string{"op plain"}, 1, always, time.Second, 3*time.Second)
		p.draw(r, []string{"op lost"}, 1, always, 3*time.Second)
		p.entries = append(p.entries, entry{at: 100 * time.Millisecond, what: "generation"}) // one that is there is read faster
	},
	// A node is deleted while the answer to its creation waits for a generation.
	func(p *plan, r *rand.Rand) {
		p.processes, p.far, p.hold = 2+r.IntN(2), 1, 5*time.Millisecond
		p.alone, p.members = membersOnly, []int{r.IntN(2)}
		p.draw(r, []string{"op plain"}, 1, always, 15*time.Millisecond, 40*time.Millisecond)
		p.draw(r, []string{"turn"}, 1, phase{time.Minute, 15 * time.Second}, 300*time.Millisecond, time.Second)
	},
	// The node of a create that was given up, or whose answer is lost, is made while its orphan is looked for. Its process asks for
	// nothing else meanwhile, since any write has what is on its way executed first.
	func(p *plan, r *rand.Rand) {
		const period, asks = 100 * time.Second, 1500 * time.Millisecond
		p.processes, p.far, p.session = 2, 0.3, 4037*time.Millisecond
		p.alone, p.members = membersOnly, []int{r.IntN(2)}
		p.draw(r, []string{"op plain"}, 1, always, 500*time.Millisecond, time.Second)
		p.entries = slices.DeleteFunc(p.entries, func(e entry) bool { return e.slot == 0 && e.at%period > asks })
		for at := 100 * time.Millisecond; at < p.length; at += period {
			p.entries = append(p.entries, entry{at: at, what: pick(r, []string{"unresolved", "held"}), seed: r.Uint64()})
		}
	},
	// A list that was asked for before a create is read after it, when the new node is gone.
	func(p *plan, r *rand.Rand) {
		p.processes, p.away, p.fickle, p.alone, p.members = 2, []time.Duration{100 * time.Millisecond, near}, 0, membersOnly, []int{0}
		p.hold, p.unlimited = 5*time.Millisecond, true
		p.draw(r, []string{"op plain"}, 1, always, 20*time.Second)
		p.draw(r, []string{"op list"}, 1, always, 5*time.Second)
	},
	// A session is lost by the clock of its process, which is connected again at once.
	func(p *plan, r *rand.Rand) {
		p.processes, p.session = 2, pick(r, []time.Duration{10053, 20071})*time.Millisecond
		p.draw(r, []string{"op plain"}, 1, always, 20*time.Second)
		p.draw(r, []string{"op overdue"}, 1, always, 10*time.Second)
	},
	// The answer that would have kept a session comes after the deadline, when the actors stand still.
	func(p *plan, r *rand.Rand) {
		p.processes, p.hold, p.session, p.alone, p.members = 2, 50*time.Millisecond, 4037*time.Millisecond, membersOnly, []int{0}
		p.draw(r, []string{"op plain"}, 1, always, 300*time.Millisecond)
		p.draw(r, []string{"still"}, 1, phase{time.Minute, 30 * time.Second}, 5*time.Second)
	},
	// A directory is replaced between a release and the next create, and the new one cannot be read.
	func(p *plan, r *rand.Rand) {
		p.processes, p.hold = 1+r.IntN(3), 5*time.Millisecond
		p.alone, p.members = membersOnly, []int{r.IntN(2)}
		p.draw(r, []string{"op plain"}, 1, always, time.Second, 3*time.Second)
		p.draw(r, []string{"replace and hide"}, 1, always, 3*time.Second)
	},
	// An owner has lost the lock, has not released it, and asks again.
	func(p *plan, r *rand.Rand) {
		p.draw(r, []string{"op plain"}, 1, always, 10*time.Second)
		p.draw(r, []string{"op owner lost"}, 1, always, 3*time.Second)
	},
	// The lock node of a simple lock is another contender's, and the earlier holder has not left.
	func(p *plan, r *rand.Rand) {
		p.processes, p.far, p.fickle, p.members, p.alone = 2+r.IntN(2), 0.7, 0, []int{0}, membersOnly
		p.draw(r, []string{"op plain"}, 1, always, 20*time.Second)
		p.draw(r, []string{"op simple"}, 1, always, 5*time.Second)
	},
	// Holders ask for the participants when several nodes of one transaction are near the end of the numbers.
	func(p *plan, r *rand.Rand) {
		p.far, p.fickle, p.members, p.alone, p.unlimited = 0, 0, []int{1}, membersOnly, true
		p.draw(r, []string{"op plain"}, 1, always, 10*time.Second)
		p.draw(r, []string{"op observe"}, 1, always, 3*time.Second)
	},
}

// membersOnly is an alone for requests of members.
var membersOnly = []int{aloneForms - 1}

// concentrate replaces all that was drawn by one focus, for some of the seeds.
func (p *plan) concentrate() {
	if p.seed%focused != 0 {
		return
	}
	r := rand.New(rand.NewPCG(p.seed, 3))
	p.entries, p.foreign, p.fickle, p.far = nil, 0, 0.1, pick(r, []float64{0, 0.3, 0.7})
	foci[p.seed/focused%uint64(len(foci))](p, r)
}
