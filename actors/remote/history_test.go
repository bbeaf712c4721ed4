package remote_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

var (
	historyFor  = flag.Duration("history.for", 0, "run histories of fresh seeds for this long")
	historySeed = flag.Uint64("history.seed", 0, "run the history of this seed alone, and print it")
)

// seeds are the histories of an exhaustive run.
var seeds = []uint64{1, 2, 3, 4, 5, 6, 7, 8}

// In random histories of clients, lock servers and faults, those of ZooKeeper among them, no two clients
// believe in a lock at one time, each request is answered, and nothing is left.
func TestHistories(t *testing.T) {
	if *historySeed != 0 {
		history(t, *historySeed)
		return
	}
	sampled := sample.OneIn(t, 2)
	for _, seed := range seeds {
		if sampled() {
			history(t, seed)
		}
	}
	end := time.Now().Add(*historyFor)
	for seed := uint64(time.Now().UnixNano()); *historyFor > 0 && time.Now().Before(end) && !t.Failed(); seed++ {
		history(t, seed)
	}
}

// world is one history.
type world struct {
	*testing.T
	*fabric
	zk       *zktest.Server
	began    time.Time
	names    []string // of lock servers
	servers  []*serverProcess
	clients  []*clientProcess
	ledger   ledger
	operator *zk.Conn    // deletes nodes
	over     atomic.Bool // the faults are over
	calm     atomic.Bool // clients ask for no more locks
	grants   atomic.Int64
	hostile  *rand.Rand     // draws the clients that keep to no protocol; nil: none
	attacked atomic.Bool    // they are to end
	clocks   *rand.Rand     // draws how fast clocks are; nil: all are alike
	ahead    float64        // by how much more than that the clocks of servers are too fast
	quiet    atomic.Bool    // no grant may be lost
	undoing  sync.WaitGroup // of the goroutines that end faults
	wrong    *wrongs        // has what was found wrong, if that does not fail the test; else nil
}

// newWorld returns the world of a test, in which nothing runs yet. Its network draws from the seed.
func newWorld(t *testing.T, seed uint64, names ...string) *world {
	return &world{T: t, fabric: newFabric(rand.New(rand.NewPCG(seed, 1))), zk: zktest.Virtual(t), began: time.Now(), names: names}
}

// dial returns the locks of a client of lock servers.
func (w *world) dial(name string, servers []string) *actors.Locks {
	w.Helper()
	l, err := remote.DialBy(w.Context(), w.dialer(name), servers, remote.DialConfig{Config: actors.Config{Logger: w.logger("")}})
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// serverProcess is a lock server and its locks.
type serverProcess struct {
	name    string
	machine *station
	bridge  *zkbridge.Bridge
	locks   *actors.Locks
	server  *remote.LockServer
	wire    *wire
	dead    bool
}

func (s *serverProcess) close() error {
	defer s.machine.system.Close()
	return errors.Join(s.locks.Close(), s.bridge.Close())
}

// clientProcess is a process without ZooKeeper.
type clientProcess struct {
	name    string
	machine *station
	locks   *actors.Locks
	variant int         // which settings of its locks it has: see history_users_test.go
	dead    atomic.Bool // what it believes does not matter any more
	work    sync.WaitGroup
}

// paths are those of the locks.
var paths = []string{"/locks/0", "/locks/1", "/locks/queue", leases, "/locks/sem/locks", "/locks/delayed"}

const (
	sessionTimeout = 6 * time.Second
	sessionMargin  = 1200 * time.Millisecond
	leaseTime      = 4 * time.Second
)

func history(t *testing.T, seed uint64) {
	zktest.Bubble(t, func(t *testing.T) {
		w := newHistory(t, seed)
		w.clocks = rand.New(rand.NewPCG(seed, 4))
		w.hostile = rand.New(rand.NewPCG(seed, 8))
		w.run(rand.New(rand.NewPCG(seed, 2)))
		if t.Failed() {
			t.Logf("by -history.seed %d", seed)
		}
	})
}

// newHistory returns the world of a history, with what its checks need.
func newHistory(t *testing.T, seed uint64) *world {
	w := newWorld(t, seed)
	w.operator = w.zk.Client(t)
	w.ledger = ledger{held: map[string][]believer{}, newest: map[string]actors.Token{}, deleted: map[string]bool{}}
	return w
}

func (w *world) logf(format string, args ...any) {
	if *historySeed != 0 {
		fmt.Printf("%8.3f %s\n", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...))
	}
}

func (w *world) run(r *rand.Rand) {
	for i := range 1 + r.IntN(2) {
		w.names = append(w.names, fmt.Sprintf("server%d", i))
	}
	for _, name := range w.names {
		w.startServer(name)
	}
	for i := range 2 + r.IntN(3) {
		w.startClient(fmt.Sprintf("client%d", i), r)
	}
	delay := []time.Duration{10 * time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second}[w.clocks.IntN(4)]
	lates := w.clocks.IntN(3) == 0
	w.slow(delay, lates)
	w.bursts.Store(w.clocks.IntN(2) == 0)
	w.logf("messages take up to %v; late ones: %t", delay, lates)
	if w.hostile != nil {
		w.startHostile(w.hostile)
	}
	faults := r.IntN(12)
	w.quiet.Store(faults == 0 && delay < time.Second && !lates)
	for range faults {
		<-time.After(time.Duration(r.Int64N(int64(6 * time.Second))))
		w.fault(r)
	}
	<-time.After(time.Duration(r.Int64N(int64(6 * time.Second))))
	w.end()
}

func (w *world) logger(name string) *slog.Logger {
	if *historySeed == 0 {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug})).With("process", name)
}

func (w *world) startServer(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	zk, m := &wire{dial: w.zk.Dial}, w.newMachine(name, w.ahead)
	bridge, err := zkbridge.Open(m.system, zkbridge.Config{Servers: w.zk.Addr(), SessionTimeout: sessionTimeout, Margin: sessionMargin, Dial: zk.Dial,
		Logger: w.logger(name), SuspendedFor: m.suspendedFor})
	if err == nil {
		err = bridge.Connected(ctx)
	}
	if err != nil {
		w.Fatal(err)
	}
	locks := actors.New(m.system, bridge, actors.Config{OmitHolder: true, Logger: w.logger(name)})
	s, err := remote.NewServer(locks, remote.ServerConfig{Lease: leaseTime, Logger: w.logger(name), Allow: allowHostile})
	if err != nil {
		w.Fatal(err)
	}
	w.servers = append(w.servers, &serverProcess{name: name, machine: m, bridge: bridge, locks: locks, server: s, wire: zk})
	w.set(name, s)
}

// startClient starts a client and its users.
func (w *world) startClient(name string, r *rand.Rand) {
	c := w.dialAs(name, time.Duration(r.IntN(2))*500*time.Millisecond)
	for i := range 1 + r.IntN(3) {
		random := rand.New(rand.NewPCG(r.Uint64(), 3))
		c.work.Go(func() { w.user(c, i, random) })
	}
}

// dialAs starts a client without users.
func (w *world) dialAs(name string, margin time.Duration) *clientProcess {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m := w.newMachine(name, 0)
	locks, err := remote.DialOn(ctx, m.system, zkbridge.NewClock(m.suspendedFor), w.network(name), w.names,
		remote.DialConfig{Config: actors.Config{Logger: w.logger(name), Margin: margin}})
	if err != nil {
		w.Fatal(err)
	}
	c := &clientProcess{name: name, machine: m, locks: locks, variant: len(w.clients)}
	w.clients = append(w.clients, c)
	return c
}

// end heals all, has the users end, and checks that nothing is left.
func (w *world) end() {
	w.attacked.Store(true)
	w.undoing.Wait()
	w.logf("the faults are over")
	w.heal()
	for _, s := range w.servers {
		if !s.dead {
			s.wire.heal()
		}
	}
	for _, c := range w.clients {
		if c.dead.Load() {
			w.cutAll(c.name, w.names, time.Hour)
		}
	}
	w.over.Store(true)
	before := w.grants.Load()
	<-time.After(15 * time.Second)
	w.quiet.Store(true)
	<-time.After(15 * time.Second)
	if live := w.live(); live > 0 && w.grants.Load() == before {
		w.Errorf("%d clients live, and none has been granted a lock within 30 s after the last fault", live)
	}
	w.calm.Store(true)
	for _, c := range w.clients {
		if c.dead.Load() {
			go c.locks.Close()
			continue
		}
		if !c.ends(time.Minute) {
			w.Errorf("%s has a request that is not answered a minute after all others have released", c.name)
		}
		<-time.After(time.Second) // for releases that no user waits for
		if open := c.locks.OpenRequests(); len(open) > 0 {
			w.Errorf("%s: open: %v", c.name, open)
		}
		if err := c.locks.Close(); err != nil {
			w.Errorf("%s: %v", c.name, err)
		}
	}
	<-time.After(2 * leaseTime)
	for _, s := range w.servers {
		if s.dead {
			s.wire.heal() // what a killed process still says comes from a session that has expired
			s.server.Close()
			s.close()
			continue
		}
		if n := s.server.Clients(); n > 0 {
			w.Errorf("%s has %d clients at the end", s.name, n)
		}
		w.closeServer(s)
	}
	for _, path := range paths {
		if nodes := w.zk.Nodes(w, path); len(nodes) > 0 && !w.Failed() {
			w.Errorf("%s has nodes at the end: %s", path, strings.Join(nodes, ", "))
		}
	}
	if n := len(w.zk.Embedded().Sessions()); n > 1 && !w.Failed() {
		w.Errorf("%d sessions are left, with the operator's", n)
	}
	for _, c := range w.clients {
		c.work.Wait()
	}
}

// ends reports whether the users of a client end within a time.
func (c *clientProcess) ends(within time.Duration) bool {
	done := make(chan struct{})
	go func() { defer close(done); c.work.Wait() }()
	select {
	case <-done:
		return true
	case <-time.After(within):
		return false
	}
}

func (w *world) live() (n int) {
	for _, c := range w.clients {
		if !c.dead.Load() {
			n++
		}
	}
	return n
}
