package actors_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// branch is one process of the history.
type branch struct {
	*dialer
	locks *actors.Locks
}

// TestHistoryOfOutages has clients of several processes take locks of all recipes while
// processes are cut off and the server is killed and started again, each for less and for more
// than a session bears, and while requests to close lost sessions fail. A grant comes only when
// the owners of all that it conflicts with were told, tokens increase, and after the last
// outage no lost session keeps a lock for longer than its margin.
func TestHistoryOfOutages(t *testing.T) {
	t.Parallel()
	for i := range 10 {
		t.Run(fmt.Sprint(i), func(t *testing.T) { bubble(t, historyOfOutages) })
	}
}

func historyOfOutages(v *virtual) {
	l := newLedger()
	var branches []branch
	var wg sync.WaitGroup
	for i := range 3 {
		n := &dialer{dial: v.Dial}
		locks := v.locks(n.config)
		branches = append(branches, branch{n, locks})
		for j := range 4 {
			c := &visitor{testLock: v.testLock, processLocks: &processLocks{locks: locks, path: "/lock"}, ledger: l,
				name: fmt.Sprint("client ", i, ".", j), away: true, holds: 4 * time.Second}
			wg.Go(func() {
				for range 15 {
					c.visit()
				}
			})
		}
	}
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	outages := 0
	for ; !isClosed(over); outages++ {
		closing := v.Inject(closingFaults[rand.N(len(closingFaults))])
		branches[rand.N(len(branches))].outage(v)
		closing.Remove()
		<-time.After(rand.N(2 * session))
	}
	for i, err := range l.errs {
		if i < 10 {
			v.Error(err)
		}
	}
	<-time.After(2 * session) // for the last session to be found lost, and closed
	if n := len(v.Sessions()); n != len(branches) {
		v.Errorf("%d sessions: %+v", n, v.Sessions())
	}
	zktest.Eventually(v, time.Hour, func() bool { return !strings.Contains(v.Dump(), "/_c_") }, "no node is left: %s", v.Dump())
	epochs := uint64(0)
	for _, b := range branches {
		epochs += b.locks.Session().Epoch
	}
	v.Logf("grants %v, %d outages, %d sessions, %d errors", l.grants, outages, epochs, len(l.errs))
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

// outage befalls the branch, or the server.
func (b branch) outage(v *virtual) {
	length := rand.N(2 * session)
	switch rand.N(3) {
	case 0:
		v.Halt()
		<-time.After(length)
		v.Restart()
	case 1:
		b.fail(true, true)
		<-time.After(length)
		b.fail(false, false)
	default: // nothing is answered, and what is sent is not lost
		b.fail(true, false)
		hole := v.Inject(embedded.Fault{Op: embedded.OpAll, Session: b.locks.Session().ID, Times: -1, Action: embedded.BlackHole})
		<-time.After(length)
		hole.Remove()
		b.fail(false, rand.N(2) == 0)
	}
}
