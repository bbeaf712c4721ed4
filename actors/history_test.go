package actors_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// An operation is one that a client does to the lock or to the resource behind it, as porcupine sees
// it. A grant whose session has expired ends at a moment that no client has seen. Its unlock is left
// out, so the model accepts the next holder beside it, with a greater token only.
type operation struct {
	kind   string // lock, unlock, write, read, update
	token  actors.Token
	shared bool  // lock, unlock: to read
	again  bool  // lock: by the holder, which is about to go from writing to reading
	number int64 // update: what was read before
	dead   bool  // lock: in a session that ZooKeeper had ended by then, unheard
}

type outcome struct {
	accepted bool
	number   int64 // of the resource
}

// resource is what the lock protects: it refuses the writes of older tokens.
type resource struct {
	mu   sync.Mutex
	seen actors.Token
}

func (r *resource) write(token actors.Token) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token.Compare(r.seen) < 0 {
		return false
	}
	r.seen = token
	return true
}

// modelState is the model's state.
type modelState struct {
	held    actors.Token // of the writer; zero: no writer
	readers int          // that hold, but for those whose grants end by loss
	newest  actors.Token // that was ever granted to a writer
	read    actors.Token // or a reader
	seen    actors.Token // by the resource
	number  int64        // that the resource holds
}

// fenced is a mutex and a resource. lossy holds the tokens whose grants ended by loss: another holder
// may follow such a grant at any time.
func fenced(lossy map[actors.Token]bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return modelState{} },
		Step: func(state, in, out any) (bool, any) {
			w, op := state.(modelState), in.(operation)
			switch op.kind {
			case "lock":
				return w.lock(op, lossy)
			case "unlock":
				if op.shared {
					w.readers--
					return w.readers >= 0, w
				}
				if w.held != op.token {
					return false, w
				}
				w.held = actors.Token{}
			default:
				return w.access(op, out.(outcome))
			}
			return true, w
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprint(in, out) },
	}
}

func (w modelState) lock(op operation, lossy map[actors.Token]bool) (bool, any) {
	if op.dead && (op.token.Compare(w.newest) < 0 || !op.shared && op.token.Compare(w.read) < 0) {
		return true, w // others have the lock already, and its token will not do
	}
	free := w.held == actors.Token{} || lossy[w.held]
	switch {
	case op.again && w.held == op.token:
	case !free || op.token.Compare(w.newest) <= 0:
		return false, w
	case op.shared:
		w.held = actors.Token{}
	case w.readers > 0 || op.token.Compare(w.read) <= 0:
		return false, w
	default:
		w.held, w.newest = op.token, op.token
		return true, w
	}
	if op.token.Compare(w.read) > 0 {
		w.read = op.token
	}
	if !lossy[op.token] {
		w.readers++
	}
	return true, w
}

// access is an access to the resource, perhaps one that is refused.
func (w modelState) access(op operation, out outcome) (bool, any) {
	accepted := op.token.Compare(w.seen) >= 0
	if accepted != out.accepted || !accepted {
		return accepted == out.accepted, w
	}
	w.seen = op.token
	switch op.kind {
	case "read":
		return out.number == w.number, w
	case "update": // of anything else than what was read, it loses an update
		ok := op.number == w.number
		w.number++
		return ok, w
	}
	return true, w
}

// history records what several clients see.
type history struct {
	mu    sync.Mutex
	begun time.Time
	ops   []porcupine.Operation

	holding  atomic.Int64 // the session of a client that holds the lock for longer
	sessions map[actors.Token]int64
	expired  map[int64]int64 // when it was told to
}

func (h *history) now() int64 { return int64(time.Since(h.begun)) }

func (h *history) add(client int, call, ret int64, in operation, out outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: ret})
}

// check has porcupine check the history.
func (h *history) check(t testing.TB) {
	lossy := map[actors.Token]bool{}
	for token, session := range h.sessions {
		if h.expired[session] != 0 {
			lossy[token] = true
		}
	}
	ops := slices.DeleteFunc(h.ops, func(o porcupine.Operation) bool {
		in := o.Input.(operation)
		return in.kind == "unlock" && lossy[in.token]
	})
	late := 0
	for i, o := range ops {
		if at := h.expired[h.sessions[o.Input.(operation).token]]; at != 0 && o.Return >= at && o.Input.(operation).kind == "lock" {
			in := o.Input.(operation)
			in.dead = true
			ops[i].Input = in
		}
		if o.Input.(operation).kind == "write" && !o.Output.(outcome).accepted {
			late++
		}
	}
	t.Logf("%d operations, %d grants in sessions that expired, %d writes refused", len(ops), len(lossy), late)
	if result := porcupine.CheckOperationsTimeout(fenced(lossy), ops, 10*time.Second); result != porcupine.Ok {
		t.Errorf("the history of %d operations is not that of a lock: %v", len(ops), result)
	}
}

// turn takes the mutex once, writes some, and releases it.
func (h *history) turn(b *testLock, client int, mu handle, r *resource) {
	if g := h.lock(b, client, mu, operation{}); g != nil {
		h.writeSome(client, g, r)
		h.unlock(b, client, g, operation{})
	}
}

// lock takes the lock, if it comes in time.
func (h *history) lock(b *testLock, client int, mu handle, op operation, options ...actors.Option) *actors.Grant {
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	if rand.N(4) == 0 && !op.again {
		options = append(options, actors.WithTimeout(rand.N(20*time.Millisecond)+1))
	}
	call := h.now()
	g, err := mu.Lock(ctx, options...)
	if err != nil {
		if !errors.Is(err, actors.ErrTimedOut) && !(op.again && isLoss(err)) {
			b.Errorf("client %d: %v", client, err)
		}
		return nil
	}
	op.kind, op.token = "lock", g.Token()
	h.add(client, call, h.now(), op, outcome{})
	h.mu.Lock()
	h.sessions[g.Token()] = g.Session()
	h.mu.Unlock()
	return g
}

func (h *history) writeSome(client int, g *actors.Grant, r *resource) {
	write := func() {
		call := h.now()
		accepted := r.write(g.Token())
		h.add(client, call, h.now(), operation{kind: "write", token: g.Token()}, outcome{accepted: accepted})
	}
	for range rand.N(3) {
		write()
	}
	if rand.N(6) == 0 { // holds it longer, and does not look whether it holds it still
		h.stay(g)
		write()
	}
}

func (h *history) stay(g *actors.Grant) {
	h.holding.Store(g.Session())
	<-time.After(rand.N(150 * time.Millisecond))
	h.holding.Store(0)
}

func (h *history) unlock(b *testLock, client int, g *actors.Grant, op operation) {
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	call := h.now()
	release := g.Release()
	lost := g.Err()
	if errors.Is(lost, actors.ErrReleased) {
		op.kind, op.token = "unlock", g.Token()
		h.add(client, call, h.now(), op, outcome{})
	}
	_, err := release.Wait(ctx)
	if err != nil && !isLoss(err) {
		b.Errorf("client %d: release: %v", client, err)
	}
}

// isLoss reports whether an error is the end of a session. A client may notice the end of the session's
// nodes first.
func isLoss(err error) bool {
	return errors.Is(err, actors.ErrSessionLost) || errors.Is(err, actors.ErrNodeDeleted)
}

// TestHistory has clients pass a lock around while connections are cut and sessions expire. Their
// history must be one of a lock whose tokens fence a resource.
func TestHistory(t *testing.T) { testHistory(t, ofMutexes()) }

// TestHistoryOfLocalQueues is the same with one node for each process.
func TestHistoryOfLocalQueues(t *testing.T) {
	testHistory(t, ofMutexes(fewGrants))
}

var fewGrants = actors.LocalQueue(actors.LocalQueueConfig{Grants: 4, Linger: 30 * time.Millisecond})

// clients returns the turn of each client of a connection.
type clients func(h *history, b *testLock, locks *actors.Locks, r *resource) (turn func(client int))

func ofMutexes(options ...actors.LockOption) clients {
	return func(h *history, b *testLock, locks *actors.Locks, r *resource) func(int) {
		mu := locks.Mutex(b.path, options...)
		return func(client int) { h.turn(b, client, mu, r) }
	}
}

func testHistory(t *testing.T, of clients) {
	t.Parallel()
	onEmbedded(t, func(b *testLock) {
		h := &history{begun: time.Now(), sessions: map[actors.Token]int64{}, expired: map[int64]int64{}}
		var r resource
		stop := make(chan struct{})
		var wg sync.WaitGroup
		end := sync.OnceFunc(func() { close(stop); wg.Wait() })
		defer end() // also of a test that fails
		var proxies []*zktest.TCPProxy
		var connections []*actors.Locks
		for i := range 3 {
			proxy := zktest.Proxy(b, b.Addr())
			locks := connect(b.T, proxy.Addr())
			proxies, connections = append(proxies, proxy), append(connections, locks)
			for j := range 3 {
				client, turn := 3*i+j, of(h, b, locks, &r)
				wg.Go(func() {
					for !isClosed(stop) {
						turn(client)
						<-time.After(rand.N(20 * time.Millisecond))
					}
				})
			}
		}
		for i := range 6 {
			<-time.After(50*time.Millisecond + rand.N(100*time.Millisecond))
			if i%2 == 0 {
				proxies[rand.N(len(proxies))].Cut()
				continue
			}
			zktest.Eventually(b, patience, func() bool {
				session := h.holding.Load()
				for _, locks := range connections {
					// A client may believe for a while in a session that was expired before.
					if s := locks.Session(); s.ID == session && s.State == messages.SessionState_CONNECTED && h.expired[session] == 0 {
						h.expired[session] = h.now()
						b.Expire(b, session)
						return true
					}
				}
				return false
			}, "a client holds the lock")
		}
		for _, locks := range connections {
			state(b, locks, messages.SessionState_CONNECTED)
		}
		<-time.After(200 * time.Millisecond)
		end()
		h.check(b)
	})
}

// The model itself refuses what must not be.
func TestHistoryModel(t *testing.T) {
	token := func(n int64) actors.Token { return actors.Token{Czxid: n} }
	op := func(call, ret int64, kind string, n int64, accepted bool) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: ret, Input: operation{kind: kind, token: token(n)}, Output: outcome{accepted: accepted}}
	}
	side := func(call int64, kind string, n int64, again bool) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: call + 1, Input: operation{kind: kind, token: token(n), shared: true, again: again}}
	}
	update := func(call int64, read int64) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: call + 1, Output: outcome{accepted: true},
			Input: operation{kind: "update", token: token(1), number: read}}
	}
	read := func(call int64, number int64) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: call + 1, Output: outcome{accepted: true, number: number},
			Input: operation{kind: "read", token: token(1)}}
	}
	for _, test := range []struct {
		name  string
		lossy map[actors.Token]bool
		ops   []porcupine.Operation
		want  bool
	}{
		{"in turn", nil, []porcupine.Operation{op(0, 1, "lock", 1, false), op(2, 3, "unlock", 1, false), op(4, 5, "lock", 2, false)}, true},
		{"two holders", nil, []porcupine.Operation{op(0, 1, "lock", 1, false), op(2, 3, "lock", 2, false)}, false},
		{"after a loss", map[actors.Token]bool{token(1): true}, []porcupine.Operation{op(0, 1, "lock", 1, false), op(2, 3, "lock", 2, false)}, true},
		{"tokens go back", nil, []porcupine.Operation{op(0, 1, "lock", 2, false), op(2, 3, "unlock", 2, false), op(4, 5, "lock", 1, false)}, false},
		{"late write refused", nil, []porcupine.Operation{op(0, 1, "write", 2, true), op(2, 3, "write", 1, false)}, true},
		{"late write accepted", nil, []porcupine.Operation{op(0, 1, "write", 2, true), op(2, 3, "write", 1, true)}, false},
		{"updates", nil, []porcupine.Operation{update(0, 0), update(2, 1), read(4, 2)}, true},
		{"update lost", nil, []porcupine.Operation{update(0, 0), update(2, 0)}, false},
		{"update not read", nil, []porcupine.Operation{update(0, 0), read(2, 0)}, false},
		{"readers", nil, []porcupine.Operation{side(0, "lock", 2, false), side(2, "lock", 1, false), side(4, "unlock", 2, false), side(6, "unlock", 1, false), op(8, 9, "lock", 3, false)}, true},
		{"writer beside a reader", nil, []porcupine.Operation{side(0, "lock", 1, false), op(2, 3, "lock", 2, false)}, false},
		{"writer after a reader was lost", map[actors.Token]bool{token(1): true}, []porcupine.Operation{side(0, "lock", 1, false), op(2, 3, "lock", 2, false)}, true},
		{"reader beside a writer", nil, []porcupine.Operation{op(0, 1, "lock", 1, false), side(2, "lock", 2, false)}, false},
		{"a writer's token goes back", nil, []porcupine.Operation{side(0, "lock", 2, false), side(2, "unlock", 2, false), op(4, 5, "lock", 1, false)}, false},
		{"downgrade", nil, []porcupine.Operation{op(0, 1, "lock", 1, false), side(2, "lock", 1, true), op(4, 5, "unlock", 1, false), side(6, "lock", 2, false)}, true},
		{"writer beside a downgrade", nil, []porcupine.Operation{op(0, 1, "lock", 1, false), side(2, "lock", 1, true), op(4, 5, "unlock", 1, false), op(6, 7, "lock", 2, false)}, false},
	} {
		if got := porcupine.CheckOperations(fenced(test.lossy), test.ops); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
