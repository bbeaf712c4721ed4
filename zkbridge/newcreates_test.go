package zkbridge

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

const manyNew = 20 * maxNewCreates

// newDirectoriesUser is a user who sends many creates in new directories, which ZooKeeper does not
// make before the call of goOn.
func newDirectoriesUser(t *testing.T, maxOutstanding int) (u *user, home string, goOn func()) {
	t.Parallel()
	s := zktest.Embedded(t)
	var blocked atomic.Bool
	end := make(chan struct{})
	f := &faultyClient{multi: func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
		if blocked.Load() && ops[0].Kind == zkconn.OpContainer {
			<-end
		}
		return send()
	}}
	u, home = userOfFaulty(t, Config{Servers: s.Addr(), MaxOutstanding: maxOutstanding}, f), s.Path(t)
	u.created(home, "n-")
	blocked.Store(true)
	return u, home, func() { close(end) }
}

func (u *user) createInNew(directory string) {
	u.bridge.Ref().SendCreate(&messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: directory, Prefix: "n-"}, u)
}

func (u *user) createInSeen(directory string) {
	u.bridge.Ref().SendCreate(&messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: directory, Prefix: "n-", DirectorySeen: true}, u)
}

// Of many creates in new directories the bridge takes few up before a request behind them. Those of
// one directory keep their order.
func TestNewDirectoriesHoldUpNoOthers(t *testing.T) {
	u, home, goOn := newDirectoriesUser(t, 0)
	takenUp := make(chan int, 1)
	last := fmt.Sprintf("%s/%d", home, manyNew-1)
	u.batch(func() {
		for i := range manyNew {
			u.bridge.Ref().SendCreate(&messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: fmt.Sprintf("%s/%d", home, i), Prefix: "n-", ListAfter: true}, u)
		}
		u.createInNew(last)
		u.createInSeen(home)
		u.bridge.ref.Tell(task(func(a *bridgeActor) { takenUp <- manyNew + 1 - a.newCreates.n }))
		u.createInSeen(last)
	})
	if n := <-takenUp; n > 4*maxNewCreates {
		t.Errorf("%d of %d are taken up before another request", n, manyNew)
	}
	if m := next[*messages.Created](u); m.GetId() != u.lastID-1 {
		t.Errorf("%v is created before the node that others do not wait for", m)
	}
	goOn()
	var inLast []uint64
	for range manyNew + 2 {
		if m := next[*messages.Created](u); m.GetId() == u.lastID || m.GetId() == u.lastID-2 || m.GetId() == u.lastID-3 {
			inLast = append(inLast, m.GetId())
			if want := fmt.Sprintf("n-%010d", len(inLast)-1); m.GetNode() != want {
				t.Errorf("%v, not %s", m, want)
			}
		}
	}
	if len(inLast) != 3 || !slices.IsSorted(inLast) {
		t.Errorf("the nodes in %s are of %v", last, inLast)
	}
}

// The creates that the bridge has not taken up end with the session, or with the bridge.
func TestNewDirectoriesAtTheEnd(t *testing.T) {
	for why, end := range map[messages.Reason]func(a *bridgeActor){
		messages.Reason_SESSION_LOST: func(a *bridgeActor) { a.OnSessionEvent(epoch.Overdue, "for a test") },
		messages.Reason_CLOSED:       func(a *bridgeActor) { a.self.Stop() },
		messages.Reason_INTERNAL:     func(*bridgeActor) { panic("for a test") },
	} {
		t.Run(why.String(), func(t *testing.T) {
			u, home, goOn := newDirectoriesUser(t, 0)
			defer goOn()
			u.batch(func() {
				for i := range manyNew {
					u.createInNew(fmt.Sprintf("%s/%d", home, i))
				}
				u.bridge.CreateAtomically([]*Create{u.bridge.NewCreate(u, &messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: home + "/a", Prefix: "n-"})})
				u.bridge.ref.Tell(task(end))
			})
			answered := map[uint64]bool{}
			for range manyNew + 1 {
				m := next[*messages.Failed](u)
				if answered[m.GetId()] || m.GetReason() != why {
					t.Fatal(m)
				}
				answered[m.GetId()] = true
			}
		})
	}
}

// The limit counts those that the bridge has not taken up.
func TestNewDirectoriesOverTheLimit(t *testing.T) {
	u, home, goOn := newDirectoriesUser(t, manyNew)
	const over = 100
	u.batch(func() {
		for i := range manyNew + over {
			u.createInNew(fmt.Sprintf("%s/%d", home, i))
		}
	})
	for range over {
		if m := next[*messages.Failed](u); m.GetReason() != messages.Reason_LIMIT_EXCEEDED {
			t.Fatal(m)
		}
	}
	goOn()
	for range manyNew {
		next[*messages.Created](u)
	}
	none[*messages.Failed](u)
}

// A create that is within the limit when it comes is not refused later because of releases, which the
// limit lets in.
func TestNewDirectoriesWithinTheLimit(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	const most = 5
	u, home := newUser(t, connected(t, Config{Servers: s.Addr(), MaxOutstanding: most})), s.Path(t)
	node := u.created(home, "n-").GetNode()
	createIn := func(name string) *messages.Create {
		return &messages.Create{Id: u.id(), Epoch: u.epoch(), Directory: home + "/" + name, Prefix: "n-"}
	}
	atomic := writer.NewAtomicCreate([]*Create{u.bridge.NewCreate(u, createIn("a")), u.bridge.NewCreate(u, createIn("b"))})
	release := &messages.ReleaseNode{Id: u.id(), Epoch: u.epoch(), Directory: home, Node: node}
	u.bridge.runInActor(func(a *bridgeActor) { // which takes none up meanwhile
		for i := range most - len(atomic.Creates()) {
			a.Receive(u, createIn(fmt.Sprint(i)))
		}
		a.Receive(nil, atomic)
		a.Receive(u, release)
	})
	for range most + 1 {
		if m, failed := next[any](u).(*messages.Failed); failed {
			t.Error(m)
		}
	}
}
