package actors_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// TestHistoryOfOutages has clients of several processes acquire locks of all recipes while
// processes are cut off and the server is killed and started again, for less and for more than a
// session survives, and while requests to close lost sessions fail. A grant comes only when the
// owners of all grants that it conflicts with know of their end, tokens increase, and after the
// last outage no lost session keeps a lock for longer than its margin.
func TestHistoryOfOutages(t *testing.T) {
	t.Parallel()
	for i := range 10 {
		t.Run(fmt.Sprint(i), func(t *testing.T) { bubble(t, historyOfOutages) })
	}
}

func historyOfOutages(v *virtual) {
	l := newLedger(v)
	var processes []dialingProcess
	var wg sync.WaitGroup
	for i := range 3 {
		p := v.process()
		processes = append(processes, p)
		for j := range 4 {
			c := &randomClient{testLock: v.testLock, processLocks: &processLocks{locks: p.locks, path: "/lock"}, ledger: l,
				name: fmt.Sprint("client ", i, ".", j), outages: true, maxHold: 4 * time.Second}
			wg.Go(func() {
				for range 15 {
					c.acquireOnce()
				}
			})
		}
	}
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	outages := 0
	for ; !isClosed(over); outages++ {
		closing := v.Inject(closingFaults[rand.N(len(closingFaults))])
		processes[rand.N(len(processes))].outage(v)
		closing.Remove()
		<-time.After(rand.N(2 * session))
	}
	<-time.After(2 * session) // in which the last lost session is found and closed
	if n := len(v.Sessions()); n != len(processes) {
		v.Errorf("%d sessions: %+v", n, v.Sessions())
	}
	zktest.Eventually(v, time.Hour, func() bool { return !strings.Contains(v.Dump(), "/_c_") }, "no node is left: %s", v.Dump())
	epochs := uint64(0)
	for _, p := range processes {
		epochs += p.locks.Session().Epoch
	}
	v.Logf("grants %v, %d outages, %d sessions, %d errors", l.grants, outages, epochs, l.errs)
}

var closingFaults = []embedded.Fault{
	{Op: embedded.OpCloseSession, Action: embedded.CutBefore},
	{Op: embedded.OpCloseSession, Action: embedded.DropReply},
	{Op: embedded.OpCloseSession, Action: embedded.BlackHole},
	{Op: embedded.OpCloseSession, Action: embedded.DelayRequest, Delay: time.Second},
	{Op: embedded.OpConnect, Nth: 2, Action: embedded.DropReply},
	{Op: embedded.OpConnect, Nth: 2, Action: embedded.BlackHoleAfter},
	{Op: embedded.OpMulti, Action: embedded.DelayRequest, Delay: session},
}
