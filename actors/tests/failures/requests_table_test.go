package failures

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/bare"
)

// TestRequestsTable has a server fail at each kind of request that a process sends for each recipe:
// it hangs up once or always, leaves an answer out, or answers with each code of ZooKeeper, whether or
// not it has executed the request. The process requests a lock that another process holds, loses its
// connection once while it waits, and then has its turn: the lock comes, or the request fails with a
// reason. No other lock of the process is lost, and its session is not SUSPENDED again and again, unless
// the server always hangs up on a request that nothing can replace. The kinds of requests are those that
// a run without a fault sends, so that a new one takes part.
func TestRequestsTable(t *testing.T) {
	t.Parallel()
	oneIn, ran := sample.OneIn, 0
	if zktest.RaceDetector { // .ci/run has a run of the whole table without it
		oneIn = sample.OneInAlways
	}
	sampled := oneIn(t, 60)
	for _, r := range locktest.Recipes {
		for _, op := range requestsOf(t, r) {
			for _, f := range serverFaults() {
				if !sampled() {
					continue
				}
				if ran++; ran%16 == 0 {
					runtime.GC() // as in TestEveryFaultAtEveryRequest
				}
				f.Op = op
				t.Run(fmt.Sprintf("%s/%v/%s", r.Name, op, nameOf(f)), func(t *testing.T) {
					locktest.Bubble(t, func(v *locktest.Virtual) { newRequestsCell(v, r).run(f) })
				})
			}
		}
	}
}

// serverFaults returns the ways in which a server fails at a request.
func serverFaults() []embedded.Fault {
	faults := []embedded.Fault{{Action: embedded.LeaveOutReply}}
	for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply} {
		faults = append(faults, embedded.Fault{Action: action}, embedded.Fault{Action: action, Times: -1})
	}
	for _, code := range bare.Codes() {
		faults = append(faults, embedded.Fault{Action: embedded.Refuse, Code: code}, embedded.Fault{Action: embedded.Misreport, Code: code})
	}
	return faults
}

func nameOf(f embedded.Fault) string {
	switch {
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
	bystander *actors.Grant
	rival     locktest.Handle
	options   []actors.Option // of the rival
}

func newRequestsCell(v *locktest.Virtual, r locktest.Recipe) *requestsCell {
	c := &requestsCell{Virtual: v, recipe: r, tested: v.Process()}
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
			c := newRequestsCell(v, r)
			ops = c.tested.Record(func() { c.run(embedded.Fault{}) })
		})
	})
	slices.Sort(ops)
	return slices.DeleteFunc(slices.Compact(ops), func(op embedded.Op) bool {
		return op == embedded.OpConnect || op == embedded.OpAuth || op == embedded.OpCloseSession
	})
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

func (c *requestsCell) run(f embedded.Fault) {
	held := locktest.Lock(c, c.rival, c.options...)
	before := c.tested.Locks.Stats()
	remove := func() {}
	if f.Action != 0 {
		if f.Times >= 0 || !slices.Contains(optionalRequests, f.Op) {
			f.Session = c.tested.Locks.Session().ID
		}
		remove = c.Inject(f).Remove
	}
	request := c.recipe.At(c.tested.Locks, c.LockPath).Acquire(context.Background(), append(slices.Clone(c.recipe.Options), actors.WithTimeout(requestsBound/2))...)
	time.Sleep(5 * time.Second)
	c.tested.Disconnect()
	c.tested.Refuse(false)
	time.Sleep(5 * time.Second)
	locktest.Unlock(c, held)
	if g, err := awaitBriefly(c, request); err == nil {
		time.Sleep(time.Second)
		_, err := awaitBriefly(c, g.Release())
		c.expectClear("release", err)
	} else {
		c.expectClear("request", err)
	}
	if f.Action == 0 {
		return
	}
	after := c.tested.Locks.Stats()
	if f.Code == loginWanted {
		return // ends the session
	}
	flaps := after.Suspensions - before.Suspensions - 1
	if hopeless := f.Times < 0 && !slices.Contains(optionalRequests, f.Op); flaps > 4 && !hopeless || after.SessionsLost > 0 {
		c.Errorf("SUSPENDED %d times, %d sessions lost", flaps, after.SessionsLost)
	}
	if err := c.bystander.Err(); err != nil && f.Code != noNode { // a directory that is missing has no locks
		c.Errorf("the other lock is lost: %v", err)
	}
	remove()
	if f.Code == noNode && (f.Op == embedded.OpGetChildren2 || f.Op == embedded.OpDelete && f.Action == embedded.Refuse) {
		return // the server lies: a node stays with the session that the process takes for deleted
	}
	again, err := awaitBriefly(c, c.rival.Acquire(context.Background(), c.options...))
	if err != nil {
		c.Fatalf("the rival afterwards: %v", err)
	}
	locktest.Unlock(c, again)
}

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
