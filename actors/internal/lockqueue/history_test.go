package lockqueue

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// A history is a random sequence of actions on a model: what owners ask for, what the server
// executes and answers, and what goes wrong.
//
//   - history_test.go: the model, and the tests of the recipes' rules
//   - history_actions_test.go: the actions, and the end of a history
//   - history_server_test.go: the server, which executes effects and answers them; history_follower_test.go: what each
//     process reads of it
//   - history_check_test.go: the checks. They decide from the server's nodes alone which contenders may hold
//   - history_delay_test.go, history_revoke_test.go, history_close_test.go, history_custom_test.go: the lock-delay,
//     requests to release, Close, custom rules
//   - history_stack_test.go: semaphores (history_semaphore_test.go) and local queues (history_localqueue_test.go) above
//     States (history_lower_test.go)

// model is a server with a lock's directory, the processes whose States use the lock, and clients
// of other libraries, which create and delete contenders. The server executes effects in any order,
// as it does concurrent requests, and answers overtake each other. But an event reaches a process
// before each answer that the server gave after it.
type model struct {
	t     *rapid.T
	rule  queue.Rule
	trace []string // events and effects

	// The server.
	nodes      map[string]*serverNode
	directory  int64 // czxid of the directory, 0 while it is missing
	nextSeq    int64
	highest    int64 // the highest number that any node had
	afterLast  int64 // the sequence number after the last one
	lastPlace  int64 // the last one in the queue
	zxid       int64
	heldMarker heldMarker
	changes    []change // of the directory and the held marker, in order
	lagging    bool     // followers show changes late
	unrelated  bool     // the directory has a child that is no contender
	// undeletable reports that the processes have no right to delete the directory.
	undeletable bool
	// answersDeletions has the processes know the outcome of each deletion of the directory.
	answersDeletions bool
	// delayedCreates are in flight from former sessions.
	delayedCreates []delayedCreate
	others         int // number of contenders that clients of other libraries have created

	// The processes.
	processes     []*process
	ids           requests.ID // the last one
	atomicCreates bool        // one request may have several nodes, from one transaction

	// What the checks need.
	token       requests.Token // of the last grant
	revocations revocations
	// othersDelete lets another client delete nodes of the processes. Other contenders may then
	// hold before the processes know. But no grant may rest on a node that was deleted long ago, or
	// while a contender of another process was ahead.
	othersDelete bool
	deleted      map[string]deletedNode
	// deletionsNoticed reports whether all processes have had time to notice the deletions.
	deletionsNoticed bool
}

// serverNode is a child of the directory.
type serverNode struct {
	name       string
	place      int64 // in the queue, whatever the sequence number
	kind       queue.Kind
	czxid      int64
	unnumbered bool     // the name has no sequence number
	process    *process // nil: another library's client
	epoch      uint64
}

// deletedNode is what the checks remember of a process's node that another client deleted.
type deletedNode struct {
	process *process
	ticks   int  // the process's ticks before the deletion
	blocked bool // a contender of another process, or of another session, was ahead and blocked it
	watched bool // the process had a watch on it
	order   int  // number of earlier deletions
	// laterKnown reports that the process knows of a later deletion.
	laterKnown bool
}

// delayedCreate is a create of a former session that the server has not executed.
type delayedCreate struct {
	process *process
	epoch   uint64
	Effect
}

// process is a State, its session, and what is on the way between the State and the server.
type process struct {
	n         int
	state     *State
	permits   int // as the process knows them
	epoch     uint64
	ticks     int
	onEffects func([]Effect) // gets the effects of each event, unless it is nil

	// The requests of its owners.
	open            machinetest.Open
	wantsContention map[requests.ID]bool   // with a NotifyContended that has not come
	nodeOf          map[requests.ID]string // of each request that was granted

	// From the State to the server.
	inFlight   []Effect           // sent and not executed
	leaving    map[string]bool    // nodes whose DeleteNode was sent
	reads      []directoryRead    // behind transactions that were executed
	unanswered []unansweredCreate // executed, and their answer was lost

	// From the server to the State.
	follower         follower
	watches          map[string]bool
	directoryWatched bool
	selfWatched      bool // the directory itself
	// knownDirectory is the czxid of the directory that the read has shown which has set that watch; 0
	// since the bridge has had an event of the watch, or has another connection.
	knownDirectory int64
	createdIn      map[uint64]int // ticks before the newest node of a CreateNode, by serial
	events         []Wake         // not delivered
	emitted        int            // number of events so far
	emittedAtTick  int            // emitted at the last tick
	delivered      int            // number of events delivered so far
	answers        []answer       // not delivered
}

// answer is an answer of the server to an effect.
type answer struct {
	event Event
	after int    // number of events that are delivered first
	due   int    // number of the tick before which it is delivered at the latest, 0: none
	gone  string // the node of a create that has failed because the node is deleted
}

func newModel(t *rapid.T, rule queue.Rule, processes int) *model {
	m := &model{t: t, rule: rule, nodes: map[string]*serverNode{}, zxid: 100, deleted: map[string]deletedNode{},
		heldMarker: heldMarker{waited: map[string]bool{}}, revocations: revocations{map[string]bool{}, map[requests.ID]bool{}}}
	m.directory, m.nextSeq = 1, rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(1<<31-1<<20-3, 1<<31-1<<20),
		rapid.Int64Range(lastEntry-3, lastEntry), rapid.Int64Range(math.MaxInt32-3, math.MaxInt32), rapid.Int64Range(math.MinInt32, math.MinInt32+3)).Draw(t, "first sequence number")
	m.lagging = rapid.Bool().Draw(t, "followers lag")
	m.unrelated = !rule.CountUnknown && rapid.Bool().Draw(t, "unrelated child")
	m.undeletable = rapid.IntRange(0, 3).Draw(t, "no right to delete the directory") == 0
	m.afterLast = rapid.SampledFrom([]int64{math.MaxInt32, math.MinInt32}).Draw(t, "after the last")
	for n := range processes {
		p := &process{n: n, permits: rule.Permits, state: newState(rule, Incarnation{byte(n)}), follower: newFollower(),
			open: machinetest.Open{}, wantsContention: map[requests.ID]bool{}, nodeOf: map[requests.ID]string{},
			createdIn: map[uint64]int{}}
		m.processes = append(m.processes, p)
		m.connect(p)
	}
	return m
}

// connect begins a session. Creates of the former one may still reach the server.
func (m *model) connect(p *process) {
	for _, f := range p.inFlight {
		if f.Kind == requests.CreateNode && f.Guard == "" {
			m.delayedCreates = append(m.delayedCreates, delayedCreate{p, p.epoch, f})
		}
	}
	p.epoch++
	p.inFlight, p.leaving, p.reads, p.unanswered = nil, map[string]bool{}, nil, nil
	p.watches, p.directoryWatched, p.events, p.answers = map[string]bool{}, false, nil, nil
	p.selfWatched, p.knownDirectory = false, 0
	p.emitted, p.emittedAtTick, p.delivered = 0, 0, 0
	m.catchUp(p)
	m.step(p, Session{Epoch: p.epoch, State: Connected})
}

func (m *model) step(p *process, e Event) {
	m.trace = append(m.trace, fmt.Sprintf("process %d > %T %+v", p.n, e, e))
	effects := slices.Clone(step(p.state, e))
	p.state.Performed()
	for _, f := range effects {
		m.trace = append(m.trace, fmt.Sprintf("  %v id %d serial %d %s %v", f.Kind, f.ID, f.Serial, f.Node, f.Nodes))
		m.perform(p, f)
	}
	if p.onEffects != nil {
		p.onEffects(effects)
	}
}

// perform sends an effect to the server, or checks what a State says about a request.
func (m *model) perform(p *process, f Effect) {
	switch k := f.Kind; {
	case k.IsNews():
		m.told(p, f)
	case k == requests.StartDelay:
		m.heldMarker.delays = append(m.heldMarker.delays, runningDelay{p, f.Serial, f.Node})
	case k >= requests.CreateNode && k <= requests.ReadHeldMarker:
		if k == requests.DeleteNode {
			p.leaving[f.Node] = true
		}
		p.inFlight = append(p.inFlight, f)
	}
}

// told checks what a State tells the owner of a request.
func (m *model) told(p *process, f Effect) {
	switch f.Kind {
	case requests.Grant, requests.Refuse, requests.Lose, requests.ConfirmRelease:
		if err := p.open.Answer(f.Kind, f.ID); err != nil {
			m.t.Fatalf("process %d: %v", p.n, err)
		}
		if f.Reason == requests.SequenceExhausted && m.highest < lastEntry {
			m.t.Fatalf("process %d: request %d is refused, and the highest number was %d: %s", p.n, f.ID, m.highest, m)
		}
		if f.Kind == requests.Grant {
			p.nodeOf[f.ID] = f.Node
			m.checkGrant(p, f)
		}
	case requests.RequestRevoke:
		m.checkRevoke(p, f.ID)
	case requests.NotifyContended:
		if p.open[f.ID] != "held" || !p.wantsContention[f.ID] {
			m.t.Fatalf("process %d: request %d, which is %q, has a NotifyContended", p.n, f.ID, p.open[f.ID])
		}
		delete(p.wantsContention, f.ID)
	}
}

// rules are those of the recipes, and two custom ones.
var rules = map[string]queue.Rule{
	"mutex":             queue.Mutex(),
	"semaphore of 2":    queue.Semaphore(2),
	"semaphore of 3":    queue.Semaphore(3),
	"semaphore of 5":    queue.Semaphore(5),
	"leases of 1":       queue.Leases(1),
	"leases of 2":       queue.Leases(2),
	"leases of 4":       queue.Leases(4),
	"request queue":     queue.RequestQueue(),
	"read-write lock":   queue.ReadWrite(),
	"independent kinds": machinetest.IndependentKinds(),
	"intention locks":   machinetest.IntentionLocks(),
	"mutex with delay":  delayedMutex(),
}

// testHistories runs random histories with the rules of these names.
func testHistories(t *testing.T, names []string, history func(t *rapid.T, m *model)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				history(t, newModel(t, rules[name], rapid.IntRange(1, 3).Draw(t, "processes")))
			})
		})
	}
}

// Owners acquire, cancel and release. The server answers late and in any order. Connections and
// sessions are lost, and clients of other libraries take part.
func TestHistories(t *testing.T) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(rules)), func(name string) bool { return rules[name].Delay })
	testHistories(t, names, func(t *rapid.T, m *model) {
		m.atomicCreates = m.rule.Permits > 1
		m.run()
		m.finish()
	})
}

// oneOfEach has one rule for each recipe.
var oneOfEach = []string{"mutex", "semaphore of 2", "leases of 2", "request queue", "read-write lock", "mutex with delay"}

// Another client deletes nodes of the processes at any time.
func TestHistoriesOfDeletionsByOthers(t *testing.T) {
	testHistories(t, oneOfEach, func(t *rapid.T, m *model) {
		m.othersDelete = true
		m.run()
		m.noticeDeletions()
		m.finish()
	})
}
