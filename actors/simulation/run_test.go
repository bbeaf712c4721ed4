package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors/internal/group"
	"github.com/actorlock/actorlock/actors/internal/streams"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// containerInterval is how often the server removes empty containers.
const containerInterval = 20 * time.Second

// simulation is one run of a plan.
type simulation struct {
	*eventLoop
	*checker
	t              *testing.T
	plan           *plan
	network        *network
	server         *embedded.Server
	backups        []*embedded.Backup // of the server, in their order
	slots          []*process         // the present incarnation of each process
	incarnations   []*process         // all of them, in the order of their start
	requests       []*programRequest
	actorRequests  []*actorRequest
	foreignClients []*foreignClient

	candidates []*candidate
	lastLed    time.Duration // when a candidate led last

	members []*partitionsMember
	group   groupState

	grants          int  // all grants so far
	usesFutures     bool // some requests were made by futures; the contender of such a request may outlive it
	requestCount    int
	faultsOver      bool // all faults are over
	stopped         bool
	elapsed         time.Duration
	lastFault       time.Duration // when a fault last began or ended; 0: there was none
	expiredAt       map[int64]time.Duration
	overslept       map[int64]bool           // sessions that have ended while the machine of their process was suspended
	deletionStarted map[string]time.Duration // when a deletion by force began, by node
	revoking        map[string]int           // revokes with a grace whose outcome is not known, by node
	deletedAt       map[string]time.Duration // when a deletion by force was over, by node
	deletions
	undoFaults []func() // ends the faults that are active

	askedFor map[string]bool // nodes for which a client has asked
	heard    map[string]bool // of these, those of whose holders one was asked to release, by process and node
	// askedByFormer are the holders that were asked to release before anyone has asked for their node.
	askedByFormer map[fmt.Stringer]bool

	activeFaults      int                                 // number of faults that have not ended
	lastLivenessCheck time.Duration                       // when checkLiveness looked last
	lastFaultOf       map[string]time.Duration            // when a fault came last, by its kind and process
	previousCheck     time.Duration                       // when the previous checks ran
	unaffectedSince   time.Duration                       // since when no fault has an effect; 0: a fault has one
	multiLockEnded    map[string]time.Duration            // when a request of a multi-lock ended last, by process and path
	requestEnded      map[string]map[string]time.Duration // when a request ended last, by path and process
	nodeHolds         map[nodeHold]*nodeHoldGrants
	lastEnds          map[string]requestEnd // the last end of a request, by path
	registers         map[string]*register

	pendingCalls     int                       // calls of callAsync that have not returned
	guardedWrites    map[string][]guardedWrite // writes behind guards, by lock
	permitCounts     []*permitCount
	generationRaises int  // raises of the generation that are in progress
	countChanging    bool // a change of the count is in progress, or its outcome is unknown

	operator         *operator
	deniedUntil      time.Duration     // until when rights may be missing
	denials          int               // denials of rights that are not restored
	nearOverflow     bool              // some sequence numbers are near their end
	numbersUsedUp    bool              // some are so near that requests may be refused
	advancedCounters map[string]string // czxids of the directories whose numbers are near their end
}

// runPlan runs a plan in a bubble and returns the simulation at its end.
func runPlan(t *testing.T, p *plan) (sim *simulation) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim = &simulation{eventLoop: newEventLoop(), checker: newChecker(p.lockSpecs()), t: t, plan: p,
			expiredAt: map[int64]time.Duration{}, overslept: map[int64]bool{}, deletionStarted: map[string]time.Duration{}, revoking: map[string]int{}, deletedAt: map[string]time.Duration{},
			deletions: deletions{of: map[string]deletion{}}, lastFaultOf: map[string]time.Duration{}, multiLockEnded: map[string]time.Duration{},
			requestEnded: map[string]map[string]time.Duration{}, nodeHolds: map[nodeHold]*nodeHoldGrants{}, lastEnds: map[string]requestEnd{},
			askedFor: map[string]bool{}, heard: map[string]bool{}, askedByFormer: map[fmt.Stringer]bool{}, registers: map[string]*register{}, guardedWrites: map[string][]guardedWrite{},
			permitCounts: []*permitCount{{initialPermits, never}}, advancedCounters: map[string]string{}, group: groupState{ledAt: make([]time.Duration, p.partitions), terms: make([]int, p.partitions)}}
		sim.eventLoop.onIdle = sim.afterEvent
		sim.network = newNetwork(sim.eventLoop, p.servers)
		sim.network.sharedName = p.sharedName
		streams.YieldBy(sim.yield(p.seed))
		var err error
		sim.server, err = embedded.Start(embedded.ServerConfig{Listener: sim.network, TickTime: 100 * time.Millisecond,
			MaxSessionTimeout: time.Minute, ContainerInterval: containerInterval, Deleted: sim.onDeleted,
			Version: p.version, MinSessionTimeout: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer sim.server.Close()
		sim.operator = sim.newOperator()
		for i := range p.foreignClients {
			sim.startForeignClient(i)
		}
		for i := range p.processes {
			sim.slots = append(sim.slots, nil)
			sim.at(time.Duration(1+i)*time.Millisecond+time.Duration(i*7919), func() { sim.startProcess(i, 0) })
		}
		for _, e := range p.entries {
			sim.at(e.at+50*time.Millisecond, func() { sim.perform(e) })
		}
		sim.eventLoop.run(p.length+50*time.Millisecond, sim.failed)
		sim.endRun()
		sim.elapsed = sim.now()
		time.Sleep(10 * time.Second) // protoactor counts dead letters for so long
	})
	// Go never frees a future with a finalizer that leads to itself, as here by the network's events.
	sim.onIdle, sim.events = nil, nil
	return sim
}

func (sim *simulation) failed() bool { return len(sim.violations) > 0 }

// rand returns a random source for one purpose.
func (sim *simulation) rand(name string, n int) *rand.Rand {
	return rand.New(rand.NewPCG(sim.plan.seed^hash([]byte(name)), uint64(n)))
}

// endRun ends the faults, waits until all requests have ended, and checks that nothing is left.
func (sim *simulation) endRun() {
	sim.withState(sim.endFaults)
	idle := func() bool {
		return sim.failed() || len(sim.requests) == 0 && len(sim.actorRequests) == 0 && sim.pendingCalls == 0 && sim.allUp() && sim.operator.openTasks.Load() == 0 && sim.foreignClientsDone() && sim.candidatesDone() && sim.membersDone()
	}
	sim.eventLoop.run(sim.now()+drainTimeout, idle)
	sim.withState(func() {
		if !idle() {
			sim.fail(sim.now(), "open at the end: %s", sim.describePending())
		}
	})
	var left string
	clean := func() bool { left = sim.leftovers(); return sim.failed() || left == "" }
	for range 120 {
		over := false
		sim.withState(func() { over = clean() })
		if over {
			break
		}
		sim.eventLoop.run(sim.now()+time.Second, sim.failed)
	}
	sim.withState(func() {
		if !clean() {
			sim.fail(sim.now(), "left at the end: %s", left)
		}
	})
	for _, path := range sim.queueDirectories() {
		sim.operator.do(func() { sim.operator.checkData(path) })
	}
	sim.eventLoop.run(sim.now()+time.Minute, func() bool { return sim.operator.openTasks.Load() == 0 })
	sim.operator.stop()
	sim.withState(func() {
		sim.stopped = true
		for _, p := range sim.incarnations {
			p.close()
		}
	})
	closed := func() bool {
		for _, p := range sim.incarnations {
			if !isDone(p.closed) {
				return false
			}
		}
		return isDone(sim.operator.closed)
	}
	sim.eventLoop.run(sim.now()+5*time.Minute, closed)
	if !closed() {
		sim.fail(sim.now(), "a process or the operator does not close")
	}
	sim.eventLoop.run(sim.now()+2*time.Minute, func() bool { return len(sim.server.Sessions()) == 0 }) // killed processes leave sessions, and the operator's lasts a minute
	if n := len(sim.server.Sessions()); n > 0 && !sim.failed() {
		sim.fail(sim.now(), "%d sessions are left", n)
	}
}

func (sim *simulation) allUp() bool {
	for _, p := range sim.slots {
		if p == nil || !p.isUp() {
			return false
		}
	}
	return true
}

// leftovers returns the nodes, watches and requests that should not exist at the end.
func (sim *simulation) leftovers() string {
	var nodes []string
	for line := range strings.Lines(sim.server.Dump()) {
		if path, _, _ := strings.Cut(line, " "); strings.HasPrefix(path, root+"/") && !sim.mayRemain(path) {
			nodes = append(nodes, strings.TrimSpace(line))
		}
	}
	for path, n := range sim.server.WatchedPaths() {
		if strings.HasPrefix(path, root+"/") && path != group.Members(groupPath) && !(n <= len(sim.slots) && sim.hadForcedDeletion(path)) {
			nodes = append(nodes, fmt.Sprint(n, " watches of ", path))
		}
	}
	for _, p := range sim.slots {
		nodes = append(nodes, p.leftOpen()...)
	}
	return strings.Join(nodes, ", ")
}

// hadForcedDeletion reports whether nodes in a directory were deleted by force. The watch of a list
// that was in progress then may remain until the directory changes again: the deletion of the
// holder's own node, which would have ended the watch, came before the watch.
func (sim *simulation) hadForcedDeletion(directory string) bool {
	for path := range sim.deletionStarted {
		if strings.HasPrefix(path, directory+"/") {
			return true
		}
	}
	return false
}

// afterEvent updates the state of all processes and requests after an event, and runs the checks.
func (sim *simulation) afterEvent() {
	if sim.stopped {
		return
	}
	now := sim.now()
	for _, p := range sim.slots {
		if p != nil {
			p.advance()
		}
	}
	sim.endTerms(now) // before a request that was waiting for it in the same process is granted
	for _, r := range sim.requests {
		r.noteGrantEnd(now)
	}
	for i := 0; i < len(sim.requests); i++ { // a holder that releases on a revoke may acquire again, which appends to the list
		sim.requests[i].advance(now)
	}
	sim.requests = slices.DeleteFunc(sim.requests, func(r *programRequest) bool { return r.stage == stageDone })
	sim.advanceActorRequests(now)
	sim.advanceCandidates(now)
	sim.advanceMembers(now)
	sim.checkNotices(now)
	sim.checkNoticed(now)
	sim.checkLiveness(now)
	sim.previousCheck = now
	if sim.plan.defect != nil {
		sim.plan.defect(sim)
	}
}

// maxOpenRequests bounds the requests that are open at one time. With more of them one event could
// take so long that Go preempts a goroutine.
const maxOpenRequests = 50
