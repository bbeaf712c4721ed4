package failures

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// operation is an operation of a client on the lock or on the resource behind it, for porcupine. No
// client knows the moment at which a grant ends whose session has expired. The history has no
// unlock of such a grant, so the model accepts the next holder beside it, with a greater token
// only.
type operation struct {
	kind   string // lock, unlock, write, read, update
	token  actors.Token
	shared bool  // lock, unlock: to read
	again  bool  // lock: by the writer, which downgrades
	number int64 // update: the number that was read before
	late   bool  // lock: in a session that ZooKeeper had ended before, which the client did not know
}

type outcome struct {
	accepted bool
	number   int64 // of the resource
}

// resource is what the lock protects. It refuses a write with a smaller token than an earlier one.
type resource struct {
	mu       sync.Mutex
	greatest actors.Token
}

func (r *resource) write(token actors.Token) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token.Compare(r.greatest) < 0 {
		return false
	}
	r.greatest = token
	return true
}

// history records the operations of several clients.
type history struct {
	mu    sync.Mutex
	begun time.Time
	ops   []porcupine.Operation

	holding  atomic.Int64           // the session of a client that holds the lock for longer
	sessions map[actors.Token]int64 // of the grants
	expired  map[int64]int64        // by session, the time at which the test ended it
}

func (h *history) now() int64 { return int64(time.Since(h.begun)) }

func (h *history) add(client int, call, ret int64, in operation, out outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: ret})
}

// check has porcupine check the history.
func (h *history) check(t testing.TB) {
	lost := map[actors.Token]bool{}
	for token, session := range h.sessions {
		if h.expired[session] != 0 {
			lost[token] = true
		}
	}
	ops := slices.DeleteFunc(h.ops, func(o porcupine.Operation) bool {
		in := o.Input.(operation)
		return in.kind == "unlock" && lost[in.token]
	})
	refused := 0
	for i, o := range ops {
		if at := h.expired[h.sessions[o.Input.(operation).token]]; at != 0 && o.Return >= at && o.Input.(operation).kind == "lock" {
			in := o.Input.(operation)
			in.late = true
			ops[i].Input = in
		}
		if o.Input.(operation).kind == "write" && !o.Output.(outcome).accepted {
			refused++
		}
	}
	t.Logf("%d operations, %d grants in sessions that expired, %d writes refused", len(ops), len(lost), refused)
	if result := porcupine.CheckOperationsTimeout(fenced(lost), ops, 10*time.Second); result != porcupine.Ok {
		slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		for _, o := range ops {
			in := o.Input.(operation)
			t.Logf("%v to %v: client %d %+v %+v of session %#x", time.Duration(o.Call), time.Duration(o.Return), o.ClientId, in, o.Output, h.sessions[in.token])
		}
		t.Errorf("the history of %d operations is not that of a lock: %v; sessions expired: %v", len(ops), result, h.expired)
	}
}

// lockOnce acquires the lock, writes to the resource, and releases.
func (h *history) lockOnce(b *locktest.Fixture, client int, mu locktest.Handle, r *resource) {
	if g := h.lock(b, client, mu, operation{}); g != nil {
		h.writeSome(client, g, r)
		h.unlock(b, client, g, operation{})
	}
}

// lock acquires the lock. It returns nil if the request times out.
func (h *history) lock(b *locktest.Fixture, client int, mu locktest.Handle, op operation, options ...actors.Option) *actors.Grant {
	ctx, cancel := context.WithTimeout(b.Context(), zktest.TimeLimit)
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
	if rand.N(6) == 0 { // does not check whether the grant is lost meanwhile
		h.holdLonger(g)
		write()
	}
}

func (h *history) holdLonger(g *actors.Grant) {
	h.holding.Store(g.Session())
	<-time.After(rand.N(150 * time.Millisecond))
	h.holding.Store(0)
}

func (h *history) unlock(b *locktest.Fixture, client int, g *actors.Grant, op operation) {
	ctx, cancel := context.WithTimeout(b.Context(), zktest.TimeLimit)
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

// isLoss reports whether an error is the result of a lost session. A client may notice the deletion
// of the session's nodes first.
func isLoss(err error) bool {
	return errors.Is(err, actors.ErrSessionLost) || errors.Is(err, actors.ErrNodeDeleted)
}

// TestHistory has clients acquire a lock in turn while connections are cut and sessions expire.
// Their history must be that of a lock whose tokens fence a resource.
func TestHistory(t *testing.T) { testHistory(t, mutexClients()) }

// TestHistoryOfLocalQueues is the same with one node for each process.
func TestHistoryOfLocalQueues(t *testing.T) {
	testHistory(t, mutexClients(fewGrants))
}

var fewGrants = actors.LocalQueue(actors.LocalQueueConfig{Grants: 4, Linger: 30 * time.Millisecond})

// clients returns what each client of a connection does again and again.
type clients func(h *history, b *locktest.Fixture, locks *actors.Locks, r *resource) (lockOnce func(client int))

func mutexClients(options ...actors.LockOption) clients {
	return func(h *history, b *locktest.Fixture, locks *actors.Locks, r *resource) func(int) {
		mu := locks.Mutex(b.LockPath, options...)
		return func(client int) { h.lockOnce(b, client, mu, r) }
	}
}

func testHistory(t *testing.T, clients clients) {
	t.Parallel()
	locktest.OnEmbedded(t, func(b *locktest.Fixture) {
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
			locks := locktest.Connect(b.T, proxy.Addr(), func(cfg *actors.Config) {
				if !b.Resumes() {
					cfg.SessionTimeout = 10 * time.Second // for which others wait for the locks of a connection that is cut; the least that the server grants
				}
			})
			proxies, connections = append(proxies, proxy), append(connections, locks)
			for j := range 3 {
				client, lockOnce := 3*i+j, clients(h, b, locks, &r)
				wg.Go(func() {
					for !locktest.IsClosed(stop) {
						lockOnce(client)
						<-time.After(rand.N(20 * time.Millisecond))
					}
				})
			}
		}
		for i := range 6 {
			<-time.After(50*time.Millisecond + rand.N(100*time.Millisecond))
			if i%2 == 0 {
				at := rand.N(len(proxies))
				if !b.Resumes() {
					locktest.WaitState(b, connections[at], messages.SessionState_CONNECTED)
					h.expired[connections[at].Session().ID] = h.now()
				}
				proxies[at].Cut()
				continue
			}
			zktest.Eventually(b, zktest.TimeLimit, func() bool {
				session := h.holding.Load()
				for _, locks := range connections {
					// A client may not know yet that its session was expired before.
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
			locktest.WaitState(b, locks, messages.SessionState_CONNECTED)
		}
		<-time.After(200 * time.Millisecond)
		end()
		h.check(b)
	})
}
