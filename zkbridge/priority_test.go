package zkbridge

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/jobs"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// blockedActor handles its first message until end is closed.
type blockedActor struct{ end <-chan struct{} }

func (a blockedActor) Receive(ask.Recipient, any) { <-a.end }
func (blockedActor) Stopped(any)                  {}
func (blockedActor) Refuse(ask.Recipient, any)    {}

// The bridge serves requests and learns of changes of its session while other actors block all
// goroutines of the actor system.
func TestBridgeDoesNotWaitForOtherActors(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	system := host.NewSystem(nil, nil)
	defer system.Close()
	end := make(chan struct{})
	defer close(end)
	for range 4 + 4*runtime.GOMAXPROCS(0) {
		system.Start("blocked", func(*host.Ref) host.Actor { return blockedActor{end} }).Tell("block")
	}
	opened, err := Open(system, Config{Servers: s.Addr()})
	must(t, err)
	b := opened.Internals()
	defer b.Close()
	must(t, b.Connected(t.Context()))
	u := newUser(t, b)
	u.subscribe()
	u.waitState(messages.SessionState_CONNECTED)
	u.created(s.Path(t), "node-")
	s.Embedded().DropConnections()
	u.waitState(messages.SessionState_SUSPENDED)
	u.waitState(messages.SessionState_CONNECTED)
}

// The bridge handles the answers to its own requests before the requests that wait in its mailbox.
func TestAnswersGoBeforeRequests(t *testing.T) {
	b := connected(t, Config{Servers: zktest.Embedded(t).Addr()})
	var order []string
	note := func(what string) func() { return func() { order = append(order, what) } }
	b.runInActor(func(a *bridgeActor) {
		a.self.Tell(task(func(*bridgeActor) { note("a request")() }))
		a.epoch.Post(note("the answer to a transaction"))
		a.epoch.Jobs().Calls.Add(func(end func(func())) { end(note("the answer to a read")) })
		a.epoch.Jobs().Calls.Flush()
	})
	b.runInActor(func(*bridgeActor) {})
	if want := []string{"the answer to a transaction", "the answer to a read", "a request"}; !slices.Equal(order, want) {
		t.Errorf("handles %q", order)
	}
}

// bulk keeps a bridge busy with requests of users that get no answer before end.
type bulk struct {
	sent map[string]int // requests under way and not answered, by the first part of the path
	mu   sync.Mutex
	end  chan struct{}
}

// hold blocks requests of users: their nodes are below paths of their own.
func (k *bulk) hold(path string) {
	kind, _, _ := strings.Cut(path[1:], "/")
	if !strings.HasPrefix(kind, "user") {
		return
	}
	k.mu.Lock()
	k.sent[kind]++
	k.mu.Unlock()
	<-k.end
}

func (k *bulk) multi(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
	if !isCheck(ops) || len(ops) > 1 { // no barrier
		k.hold(ops[0].Path)
	}
	return send()
}

func (k *bulk) underWay(kind string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sent[kind]
}

// What a lock needs does not wait for what users ask for, however much that is.
func TestLocksDoNotWaitForUsers(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	k := &bulk{sent: map[string]int{}, end: make(chan struct{})}
	f := &faultyClient{multi: k.multi, beforeRead: k.hold}
	u := userOfFaulty(t, Config{Servers: s.Addr()}, f)
	directory := s.Path(t)
	node := u.created(directory, "n-").GetNode()
	conn := s.Client(t)
	for _, path := range []string{"/userNodes", "/userNodes/a", "/userNodes/b", "/userNode", "/userNode/a"} {
		makeNode(t, conn, path, "")
	}
	const many = 100
	var users sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range many {
		users.Go(func() { u.bridge.Children(ctx, "/userNodes", nil) })
		users.Go(func() { u.bridge.WatchChildren(ctx, "/userNodes", nil, make(mailbox, 1)) })
		users.Go(func() { u.bridge.GetNode(ctx, "/userNode/a") })
		users.Go(func() { u.bridge.GetData(ctx, "/userNode/a") })
		users.Go(func() { u.bridge.Multi(ctx, &zk.DeleteRequest{Path: "/userMulti"}) })
	}
	zktest.Eventually(t, timeLimit, func() bool {
		return k.underWay("userNodes") >= jobs.MaxSurveys && k.underWay("userNode")+k.underWay("userMulti") >= jobs.MaxCalls
	}, "the users' requests fill their slots")

	u.created(directory+"/new/path", "n-") // makes directories
	if listed := u.listed(&messages.List{Directory: directory}); len(listed.GetChildren()) != 2 {
		t.Errorf("%v", listed)
	}
	u.watch(directory, node)
	u.transacted(makeOp(directory+"/marker", ""))
	f.delete = once(zk.ErrConnectionClosed) // the delete is repeated
	u.release(directory, node)
	next[*messages.NodeReleased](u)

	if n := k.underWay("userNodes"); n != jobs.MaxSurveys {
		t.Errorf("%d reads of directories' nodes are under way, not %d", n, jobs.MaxSurveys)
	}
	if n := k.underWay("userNode") + k.underWay("userMulti"); n != jobs.MaxCalls {
		t.Errorf("%d calls are under way, not %d", n, jobs.MaxCalls)
	}
	cancel()
	users.Wait()
	// What nobody waits for any more is not sent.
	close(k.end)
	zktest.Eventually(t, timeLimit, func() bool {
		_, err := u.bridge.Children(within(t), directory, nil)
		_, err2 := u.bridge.GetNode(within(t), directory)
		return errors.Join(err, err2) == nil
	}, "calls are answered")
	if n := k.underWay("userNodes"); n > jobs.MaxSurveys {
		t.Errorf("%d reads of nodes were sent for callers that do not wait", n-jobs.MaxSurveys)
	}
}
