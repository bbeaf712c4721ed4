package failures

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// TestHistoryOfOutages has clients of several processes acquire locks of all recipes while
// processes are cut off and the server is killed and started again, for less and for more than a
// session survives, and while requests to close lost sessions fail. A grant comes only when the
// owners of all grants that it conflicts with know of their end, tokens increase, and after the
// last outage no lost session keeps a lock for longer than its margin.
func TestHistoryOfOutages(t *testing.T) {
	t.Parallel()
	for i := range sample.Habit(3, 10) {
		t.Run(fmt.Sprint(i), func(t *testing.T) { locktest.Bubble(t, historyOfOutages) })
	}
}

func historyOfOutages(v *locktest.Virtual) {
	l := locktest.NewLedger(v)
	var processes []locktest.Process
	var wg sync.WaitGroup
	for i := range 3 {
		p := v.Process()
		processes = append(processes, p)
		for j := range 4 {
			c := &randomClient{Fixture: v.Fixture, processLocks: &processLocks{locktest.Connection{Locks: p.Locks}, "/lock"}, Ledger: l,
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
	for ; !locktest.IsClosed(over); outages++ {
		closing := v.Inject(locktest.ClosingFaults[rand.N(len(locktest.ClosingFaults))])
		processes[rand.N(len(processes))].Outage(v)
		closing.Remove()
		<-time.After(rand.N(2 * locktest.SessionTimeout))
	}
	<-time.After(2 * locktest.SessionTimeout) // in which the last lost session is found and closed
	if n := len(v.Sessions()); n != len(processes) {
		v.Errorf("%d sessions: %+v", n, v.Sessions())
	}
	zktest.Eventually(v, time.Hour, func() bool { return !strings.Contains(v.Dump(), "/_c_") }, "no node is left: %s", v.Dump())
	epochs := uint64(0)
	for _, p := range processes {
		epochs += p.Locks.Session().Epoch
	}
	v.Logf("grants %v, %d outages, %d sessions, %d errors", l.Grants, outages, epochs, l.Errs)
}
