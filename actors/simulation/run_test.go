package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// containers is how often the server removes empty directories.
const containers = 20 * time.Second

// world is one run of a plan.
type world struct {
	*driver
	*checker
	t       *testing.T
	plan    *plan
	net     *network
	server  *embedded.Server
	slots   []*process // the present incarnation of each process
	all     []*process
	open    []*programRequest
	owners  []*owner
	foreign []*foreigner

	candidates []*candidate
	led        time.Duration // when one led last

	grants  int  // so far
	futures bool // some requests were made by futures, which may have a contender after their end
	asked   int
	healing bool // all faults are over
	stopped bool
	elapsed time.Duration
	faulty  time.Duration // when the last fault ended
	expired map[int64]time.Duration
	deleted map[string]time.Duration // nodes deleted by force: when that began
	gone    map[string]time.Duration // the same: when it was over
	deletions
	undo []func() // ends the faults that last

	active    int                                 // faults that last
	looked    time.Duration                       // for sleepers
	rested    map[string]time.Duration            // when a fault of a kind came last
	seen      time.Duration                       // when all was looked at before
	calmSince time.Duration                       // 0: it is not calm
	multis    map[string]time.Duration            // when a request of a multi-lock ended last, by process and path
	busy      map[string]map[string]time.Duration // when a request ended last, by path and process
	nodeHolds map[nodeHold]*holdUse
	endings   map[string]ending // the last one, by path
	registers map[string]*register

	closed map[string]time.Duration // when an owner's request was over for the last time

	questions int                  // that are not answered
	guarded   map[string][]guarded // writes behind guards, by lock
	counts    []*count
	raising   int  // raises of the generation that are under way
	counting  bool // a change of the count is under way, or its outcome unknown

	operator *operator
	denied   time.Duration     // until when rights may be missing
	denials  int               // of rights, that are not restored
	overflow bool              // some sequence numbers are near their end
	advanced map[string]string // directories where that is so, with their czxids
}

// run runs the plan in a bubble and returns the world at its end.
func run(t *testing.T, p *plan) (w *world) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w = &world{driver: newDriver(), checker: newChecker(specs()), t: t, plan: p,
			expired: map[int64]time.Duration{}, deleted: map[string]time.Duration{}, gone: map[string]time.Duration{}, deletions: deletions{of: map[string]deletion{}}, advanced: map[string]string{}, registers: map[string]*register{},
			multis: map[string]time.Duration{}, busy: map[string]map[string]time.Duration{}, nodeHolds: map[nodeHold]*holdUse{},
			endings: map[string]ending{}, rested: map[string]time.Duration{}, closed: map[string]time.Duration{},
			guarded: map[string][]guarded{}, counts: []*count{{firstShared, never}}}
		w.driver.step = w.look
		w.net = newNetwork(w.driver, p.servers)
		var err error
		w.server, err = embedded.Start(embedded.ServerConfig{Listener: w.net, TickTime: 100 * time.Millisecond,
			MaxSessionTimeout: time.Minute, ContainerInterval: containers, Deleted: w.noteDeletion})
		if err != nil {
			t.Fatal(err)
		}
		defer w.server.Close()
		w.operator = w.newOperator()
		for i := range p.foreign {
			w.startForeigner(i)
		}
		for i := range p.processes {
			w.slots = append(w.slots, nil)
			w.at(time.Duration(1+i)*time.Millisecond+time.Duration(i*7919), func() { w.startProcess(i, 0) })
		}
		for _, e := range p.entries {
			w.at(e.at+50*time.Millisecond, func() { w.perform(e) })
		}
		w.driver.run(p.length+50*time.Millisecond, w.failed)
		w.drain()
		w.elapsed = w.now()
		time.Sleep(10 * time.Second) // protoactor counts dead letters for so long
	})
	return w
}

func (w *world) failed() bool { return len(w.violations) > 0 }

// rand is a source for a purpose of its own.
func (w *world) rand(name string, n int) *rand.Rand {
	return rand.New(rand.NewPCG(w.plan.seed^hash([]byte(name)), uint64(n)))
}

// drain ends the faults, and waits until nothing is left.
func (w *world) drain() {
	w.locked(w.heal)
	settled := func() bool {
		return w.failed() || len(w.open) == 0 && len(w.owners) == 0 && w.questions == 0 && w.connected() && w.operator.open.Load() == 0 && w.foreignersAreDone() && w.candidatesAreDone()
	}
	w.driver.run(w.now()+drainTime, settled)
	w.locked(func() {
		if !settled() {
			w.fail(w.now(), "open at the end: %s", w.pending())
		}
	})
	var left string
	clean := func() bool { left = w.left(); return w.failed() || left == "" }
	for range 120 {
		over := false
		w.locked(func() { over = clean() })
		if over {
			break
		}
		w.driver.run(w.now()+time.Second, w.failed)
	}
	w.locked(func() {
		if !clean() {
			w.fail(w.now(), "left at the end: %s", left)
		}
	})
	for _, path := range w.directories() {
		w.operator.do(func() { w.operator.check(path) })
	}
	w.driver.run(w.now()+time.Minute, func() bool { return w.operator.open.Load() == 0 })
	w.operator.end()
	w.locked(func() {
		w.stopped = true
		for _, p := range w.all {
			p.close()
		}
	})
	closed := func() bool {
		for _, p := range w.all {
			if !isDone(p.ended) {
				return false
			}
		}
		return isDone(w.operator.over)
	}
	w.driver.run(w.now()+5*time.Minute, closed)
	if !closed() {
		w.fail(w.now(), "a process does not close")
	}
	w.driver.run(w.now()+2*time.Minute, func() bool { return len(w.server.Sessions()) == 0 }) // of those that were killed, and the operator's of a minute
	if n := len(w.server.Sessions()); n > 0 && !w.failed() {
		w.fail(w.now(), "%d sessions are left", n)
	}
}

func (w *world) connected() bool {
	for _, p := range w.slots {
		if p == nil || !p.isUp() {
			return false
		}
	}
	return true
}

// left tells which nodes, watches and requests are there that should not be.
func (w *world) left() string {
	var nodes []string
	for line := range strings.Lines(w.server.Dump()) {
		if path, _, _ := strings.Cut(line, " "); strings.HasPrefix(path, root+"/") && !w.mayStay(path) {
			nodes = append(nodes, strings.TrimSpace(line))
		}
	}
	for path, n := range w.server.WatchedPaths() {
		if strings.HasPrefix(path, root+"/") && !(n <= len(w.slots) && w.wasForced(path)) {
			nodes = append(nodes, fmt.Sprint(n, " watches of ", path))
		}
	}
	for _, p := range w.slots {
		nodes = append(nodes, p.leftOpen()...)
	}
	return strings.Join(nodes, ", ")
}

// wasForced reports whether nodes in a directory were deleted by force. A list that was on its way
// then to notice others leaves its watch, until the next change in the directory: the deletion of the
// holder's own node, which would end the watch, has come before it.
func (w *world) wasForced(directory string) bool {
	for path := range w.deleted {
		if strings.HasPrefix(path, directory+"/") {
			return true
		}
	}
	return false
}

// look is called when all that an event has caused has happened.
func (w *world) look() {
	if w.stopped {
		return
	}
	now := w.now()
	for _, p := range w.slots {
		if p != nil {
			p.look()
		}
	}
	for _, r := range w.open {
		r.lookAtEnd(now)
	}
	for i := 0; i < len(w.open); i++ { // a holder that heeds a revocation may ask anew, which makes the list longer
		w.open[i].look(now)
	}
	w.open = slices.DeleteFunc(w.open, func(r *programRequest) bool { return r.state == done })
	w.lookAtOwners(now)
	w.lookAtCandidates(now)
	w.tick(now)
	w.checkSleepers(now)
	w.seen = now
	if w.plan.defect != nil {
		w.plan.defect(w)
	}
}

// process is one process: a connection and its locks.
type process struct {
	w        *world
	name     string
	slot     int
	host     *host
	locks    *actors.Locks
	apart    *apart        // nil where Connect has made locks
	ready    chan struct{} // connecting is over
	ended    chan struct{} // closing is over
	err      error
	dead     bool          // killed, or closed
	shaky    time.Duration // until when faults may have an effect on it
	foggy    time.Duration // until when faults may delay what it hears
	frozen   bool
	limited  bool
	runs     bool               // its candidate was started, if it has one
	replaces bool               // the directory of the next mutex that is released is replaced: see replaceAfter
	hides    bool               // no client may read it
	system   *actor.ActorSystem // where there are actors
	session  int64
	state    messages.SessionState

	warned    map[string]time.Duration // when a release on a path was answered because its node was missing
	former    map[int64]time.Duration  // sessions that were lost, and when
	connected time.Duration            // since when
	budget    uint32                   // of its local queues
}

func (w *world) startProcess(slot, incarnation int) {
	p := &process{w: w, slot: slot, name: fmt.Sprintf("p%d.%d", slot, incarnation), ready: make(chan struct{}),
		warned: map[string]time.Duration{}, former: map[int64]time.Duration{}}
	p.host = w.net.newHost(p.name, w.rand(p.name, 0).Uint64())
	if r := w.rand(p.name, 3); r.Float64() < w.plan.far {
		p.host.far = pick(r, []time.Duration{10 * time.Millisecond, 100 * time.Millisecond})
	}
	if w.plan.away != nil {
		p.host.far = w.plan.away[slot]
	}
	w.slots[slot] = p
	w.all = append(w.all, p)
	w.line("%s starts", p.name)
	p.connect()
}

func (p *process) connect() {
	if p.dead {
		close(p.ready)
		return
	}
	r := p.w.rand(p.name, 1)
	// A history must be the same in another process, and on another host: no node names them.
	cfg := actors.Config{SessionTimeout: p.w.plan.session, Dial: p.host.dial, Logger: slog.New(slog.DiscardHandler), OmitHolder: true}
	cfg.StopOnSuspended = r.IntN(4) == 0
	if r.IntN(8) == 0 && !p.w.plan.unlimited {
		cfg.MaxRequestsPerLock, cfg.MaxRequests, p.limited = 4, 12, true
	}
	if r.IntN(4) == 0 {
		cfg.IdleTimeout = 300 * time.Millisecond
	}
	if r.IntN(2) == 0 {
		p.system = newActorSystem()
		cfg.System = p.system
	}
	isApart := r.IntN(2) == 0
	ready := make(chan struct{})
	p.ready = ready
	go func() {
		defer close(ready)
		if isApart {
			p.locks, p.apart, p.err = openApart(p.w.net.list(), cfg)
			return
		}
		p.locks, p.err = actors.Connect(context.Background(), p.w.net.list(), cfg)
	}()
}

func (p *process) isUp() bool {
	select {
	case <-p.ready:
		return p.locks != nil && !p.dead
	default:
		return false
	}
}

func (p *process) look() {
	select {
	case <-p.ready:
		if p.locks == nil && !p.dead {
			p.w.line("%s: connect: %v", p.name, p.err)
			p.ready = make(chan struct{})
			p.w.after(time.Millisecond, p.connect) // at a time of its own: others may have failed at this one
		}
	default:
		return
	}
	if p.locks == nil {
		return
	}
	if !p.runs {
		p.runs = true
		p.w.startCandidate(p)
	}
	s := p.locks.Session()
	if s.State != p.state || s.ID != p.session {
		p.noteSession(p.w.now(), s.ID, s.State)
		p.state, p.session = s.State, s.ID
		p.w.line("%s is %v, session %#x", p.name, s.State, s.ID)
	}
}

// close ends the process's locks in the background.
func (p *process) close() {
	p.dead = true
	if p.ended != nil {
		return
	}
	p.ended = make(chan struct{})
	go func() {
		<-p.ready
		if p.locks != nil {
			p.locks.Close()
		}
		if p.apart != nil {
			p.apart.close()
		}
		if p.system != nil {
			p.system.Shutdown()
		}
		close(p.ended)
	}()
}

// disturb notes that a fault may have an effect on the process for so long.
func (p *process) disturb(d time.Duration) {
	p.shaky = max(p.shaky, p.w.now()+d)
	p.foggy = max(p.foggy, p.w.now()+d)
}

// interrupt notes the same of a fault that delays no message: what was on its way is lost.
func (p *process) interrupt(d time.Duration) { p.shaky = max(p.shaky, p.w.now()+d) }

// isShaky reports whether a fault may have an effect on the process.
func (p *process) isShaky() bool { return p.w.now() < p.shaky || p.frozen || p.dead }
