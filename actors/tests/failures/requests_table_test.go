package failures

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest/bare"
)

// allLies takes some three minutes.
var allLies = flag.Bool("all-lies", false, "have TestRequestsTable tell all lies, in place of some")

// TestRequestsTable has a server fail at each kind of request that a process sends for each recipe:
// it hangs up once or always, leaves an answer out, answers with each code of ZooKeeper and some others,
// whether or not it has executed the request, or tells a lie (lies_test.go). The process requests a lock that another process holds, loses its
// connection once while it waits, and then has its turn: the lock comes, or the request fails with a
// reason. No other lock of the process is lost, and its session is not SUSPENDED again and again, unless
// the server always hangs up on a request that nothing can replace. The kinds of requests are those that
// a run without a fault sends, so that a new one takes part.
func TestRequestsTable(t *testing.T) {
	t.Parallel()
	oneLieIn, ran := sample.Size(60, 8), 0
	if *allLies {
		oneLieIn = 1
	}
	sampled, lieSampled := sample.OneIn(t, 60), sample.OneInAlways(t, oneLieIn)
	for _, r := range locktest.Recipes {
		for _, op := range requestsOf(t, r) {
			for _, f := range rowsOf(op) {
				if f.lie == nil && !sampled() || f.lie != nil && !lieSampled() {
					continue
				}
				if ran++; ran%16 == 0 {
					runtime.GC() // as in TestEveryFaultAtEveryRequest
				}
				t.Run(fmt.Sprintf("%s/%v/%s", r.Name, nameOf(op), f.name()), func(t *testing.T) {
					locktest.Bubble(t, func(v *locktest.Virtual) { newRequestsCell(v, r, f).run(f) })
				})
			}
		}
	}
}

// tableFault is a way in which a server fails at a request: a fault, or a lie.
type tableFault struct {
	embedded.Fault // with the request, and Times below 0 for always
	lie            *lie
}

// endsSessions reports whether the process has to take its session for over.
func (f tableFault) endsSessions() bool {
	return f.lie != nil && f.lie.endsSession || f.Op == embedded.OpConnect && f.Times < 0 ||
		f.Op == embedded.OpAuth && (slices.Contains(finalCodes, f.Code) || f.lie != nil && f.Times < 0)
}

// rowsOf returns the ways in which a server fails at a kind of request.
func rowsOf(op embedded.Op) (rows []tableFault) {
	for _, f := range serverFaults() {
		if f.Op = op; op != opEvent && (f.Code == 0 || hasCode(op)) {
			rows = append(rows, tableFault{Fault: f})
		}
	}
	for _, l := range slices.Concat(lies, believed) {
		if l.isAbout(op) {
			rows = append(rows, tableFault{embedded.Fault{Op: op}, &l}, tableFault{embedded.Fault{Op: op, Times: -1}, &l})
		}
	}
	return rows
}

// hasCode reports whether a server can refuse the request.
func hasCode(op embedded.Op) bool { return op != embedded.OpConnect && op != embedded.OpPing }

// unlistedCodes are codes that ZooKeeper does not have.
var unlistedCodes = []int32{7, -9, -99, -126, -1000, math.MinInt32}

// serverFaults returns the ways in which a server fails at a request.
func serverFaults() []embedded.Fault {
	faults := []embedded.Fault{{Action: embedded.LeaveOutReply}}
	for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply} {
		faults = append(faults, embedded.Fault{Action: action}, embedded.Fault{Action: action, Times: -1})
	}
	for _, code := range append(bare.Codes(), unlistedCodes...) {
		faults = append(faults, embedded.Fault{Action: embedded.Refuse, Code: code}, embedded.Fault{Action: embedded.Misreport, Code: code})
	}
	return faults
}

func nameOf(op embedded.Op) string {
	if op == opEvent {
		return "event"
	}
	return op.String()
}

func (f tableFault) name() string {
	switch {
	case f.lie != nil && f.Times < 0:
		return f.lie.name + ", always"
	case f.lie != nil:
		return f.lie.name
	case f.Code != 0:
		return fmt.Sprintf("%v %d", f.Action, f.Code)
	case f.Times < 0:
		return fmt.Sprintf("%v, always", f.Action)
	}
	return f.Action.String()
}

// requestsCell is one run of TestRequestsTable: the tested process, with a lock that it holds all the
// time, and a rival for the lock.
type requestsCell struct {
	*locktest.Virtual
	recipe    locktest.Recipe
	tested    locktest.Process
	liar      liar // between the server and the tested process
	bystander *actors.Grant
	rival     locktest.Handle
	options   []actors.Option // of the rival
}

func newRequestsCell(v *locktest.Virtual, r locktest.Recipe, f tableFault) *requestsCell {
	c := &requestsCell{Virtual: v, recipe: r, liar: liar{path: v.LockPath, most: maxLies * max(1, len(r.Directories))}}
	network := &locktest.Network{}
	if f.lie != nil {
		network.OnAnswer = c.liar.onAnswer
	}
	c.tested = v.ProcessOn(network, func(cfg *actors.Config) {
		cfg.Auth = []zkbridge.Auth{{Scheme: "digest", Credential: "me:secret"}}
	})
	c.bystander = locktest.Lock(v, c.tested.Locks.Mutex("/bystander"))
	others := v.Locks()
	if c.rival, c.options = r.At(others, v.LockPath), r.Options; r.Kind == messages.Kind_READ {
		c.rival = others.RWMutex(v.LockPath).Write()
	}
	return c
}

// requestsOf returns the kinds of requests that the tested process sends.
func requestsOf(t *testing.T, r locktest.Recipe) (ops []embedded.Op) {
	t.Run(r.Name+"/no fault", func(t *testing.T) {
		locktest.Bubble(t, func(v *locktest.Virtual) {
			c := newRequestsCell(v, r, tableFault{})
			ops = c.tested.Record(func() { c.run(tableFault{}) })
		})
	})
	ops = append(ops, embedded.OpConnect, embedded.OpPing, opEvent) // which Record leaves out
	slices.Sort(ops)
	return slices.DeleteFunc(slices.Compact(ops), func(op embedded.Op) bool { return op == embedded.OpCloseSession })
}

// optionalRequests are those that not every server knows. A server that always hangs up on one does so in
// all sessions.
var optionalRequests = []embedded.Op{embedded.OpCreateContainer, embedded.OpCreate2, embedded.OpMultiRead, embedded.OpSetWatches,
	embedded.OpGetEphemerals, embedded.OpRemoveWatches}

const (
	noNode      = -101
	loginWanted = -124
)

const requestsBound = 2 * time.Minute

func (c *requestsCell) run(f tableFault) {
	held := locktest.Lock(c, c.rival, c.options...)
	before := c.tested.Locks.Stats()
	remove := func() {}
	switch {
	case f.lie != nil:
		c.liar.begin(f.lie, f.Op, f.Times < 0)
		remove = func() { c.liar.begin(nil, 0, false) }
	case f.Action != 0:
		if f.Times >= 0 || !slices.Contains(optionalRequests, f.Op) {
			f.Session = c.tested.Locks.Session().ID
		}
		remove = c.Inject(f.Fault).Remove
	}
	request := c.recipe.At(c.tested.Locks, c.LockPath).Acquire(context.Background(), append(slices.Clone(c.recipe.Options), actors.WithTimeout(requestsBound/2))...)
	time.Sleep(5 * time.Second)
	c.tested.Disconnect()
	c.tested.Refuse(false)
	time.Sleep(5 * time.Second)
	c.expectOneHolds(f, request, held)
	c.unlockRival(held, f)
	if g, err := awaitBriefly(c, request); err == nil {
		time.Sleep(time.Second)
		_, err := awaitBriefly(c, g.Release())
		c.expectClear("release", err)
	} else {
		c.expectClear("request", err)
	}
	if f == (tableFault{}) {
		return
	}
	if n := c.liar.lies(); n > c.liar.most {
		c.Errorf("%d lies were told: the client asks without a pause", n)
	}
	after := c.tested.Locks.Stats()
	if f.Code == loginWanted {
		return // ends the session
	}
	c.expectFewLosses(f, int(after.Suspensions-before.Suspensions)-1, int(after.SessionsLost-before.SessionsLost))
	remove()
	if f.Code == noNode && (f.Op == embedded.OpGetChildren2 || f.Op == embedded.OpGetData || f.Op == embedded.OpDelete && f.Action == embedded.Refuse) {
		return // the server lies: a node stays with the session that the process takes for deleted
	}
	if f.lie != nil && slices.Contains(f.lie.leavesNode, f.Op) {
		locktest.Must(c, c.tested.Locks.Close())
	}
	again, err := awaitBriefly(c, c.rival.Acquire(context.Background(), c.options...))
	if err != nil {
		c.Fatalf("the rival afterwards: %v", err)
	}
	c.unlockRival(again, f)
}

// expectOneHolds checks that the process is not granted what the rival holds. A server that says of the
// rival's node that it does not exist is believed: nothing else shows a release.
func (c *requestsCell) expectOneHolds(f tableFault, request *actors.Future[*actors.Grant], held *actors.Grant) {
	c.Helper()
	if !locktest.IsClosed(request.Done()) || held.Err() != nil || f.Code == noNode && f.Op == embedded.OpGetData {
		return
	}
	if _, err := request.Result(); err == nil {
		c.Error("two hold the lock")
	}
}

// unlockRival releases the rival's grant. A server whose zxids go back has lost transactions, as it
// seems: the tested process raises the generation, which ends all sessions.
func (c *requestsCell) unlockRival(g *actors.Grant, f tableFault) {
	c.Helper()
	if err := g.Unlock(locktest.Within(c)); err != nil && !(f.endsSessions() && errors.Is(err, actors.ErrSessionLost)) {
		c.Fatalf("unlock of the rival: %v", err)
	}
}

// expectFewLosses checks how often the process was SUSPENDED, and how many sessions it has lost, with
// the lock that it holds all the time.
func (c *requestsCell) expectFewLosses(f tableFault, flaps, lost int) {
	c.Helper()
	if !c.Resumes() {
		lost -= min(lost, 1+flaps) // each ends with its connection
	}
	always := f.Times < 0 && (f.lie != nil || !slices.Contains(optionalRequests, f.Op)) // nothing can replace the request
	switch {
	case !always && flaps > 4, always && flaps+lost > maxFlaps, !f.endsSessions() && lost > 0, !always && lost > 2:
		c.Errorf("SUSPENDED %d times, %d sessions lost", flaps, lost)
	}
	if err := c.bystander.Err(); err != nil && c.Resumes() && f.Code != noNode && !f.endsSessions() { // a directory that is missing has no locks
		c.Errorf("the other lock is lost: %v", err)
	}
}

// maxFlaps is how often a connection ends, or a session, on a server that fails at all requests of a
// kind: three times a second.
const maxFlaps = 400

// expectClear checks that an error, if any, has a reason.
func (c *requestsCell) expectClear(what string, err error) {
	c.Helper()
	var refused *messages.Refused
	var lost *messages.Lost
	if err != nil && !errors.As(err, &refused) && !errors.As(err, &lost) && !errors.Is(err, actors.ErrSuspended) {
		c.Errorf("%s: %v (%T)", what, err, err)
	}
}

// awaitBriefly waits until a future is complete.
func awaitBriefly[T any](c *requestsCell, f *actors.Future[T]) (T, error) {
	c.Helper()
	select {
	case <-f.Done():
	case <-time.After(requestsBound):
		var nodes []string
		for _, end := range c.recipe.DirectoryEnds() {
			nodes = append(nodes, c.LockNodes(end)...)
		}
		c.Fatalf("a future is not complete; %d SUSPENDED; nodes %v", c.tested.Locks.Stats().Suspensions, nodes)
	}
	return f.Result()
}

// A process whose nodes a server leaves out of its lists makes new ones after a pause.
func TestNodesThatAreNotListed(t *testing.T) {
	t.Parallel()
	none := slices.IndexFunc(believed, func(l lie) bool { return l.name == "a list of zeros" })
	for _, op := range []embedded.Op{embedded.OpGetChildren2, embedded.OpMultiRead} {
		for _, r := range locktest.Named("mutex", "multi-lock", "multi-lock with a semaphore") {
			t.Run(r.Name+"/"+op.String(), func(t *testing.T) {
				locktest.Bubble(t, func(v *locktest.Virtual) {
					f := tableFault{embedded.Fault{Op: op, Times: -1}, &believed[none]}
					newRequestsCell(v, r, f).run(f)
				})
			})
		}
	}
}

// A process whose sessions end at their first answer opens the next one after a pause.
func TestSessionsThatEndAtOnce(t *testing.T) {
	t.Parallel()
	i := slices.IndexFunc(lies, func(l lie) bool { return l.name == "zxid goes back" })
	locktest.Bubble(t, func(v *locktest.Virtual) {
		f := tableFault{embedded.Fault{Op: embedded.OpGetData, Times: -1}, &lies[i]}
		newRequestsCell(v, locktest.Recipes[0], f).run(f)
	})
}
