package remote_test

import (
	"context"
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
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

var (
	historyFor  = flag.Duration("history.for", 0, "run histories of fresh seeds for this long")
	historySeed = flag.Uint64("history.seed", 0, "run the history of this seed alone, and print it")
)

// seeds are kept: each has failed once.
var seeds = []uint64{1, 2, 3, 4, 5, 6, 7, 8}

// In random histories of clients, lock servers and faults no two clients believe in a lock at one
// time, each request is answered, and nothing is left.
func TestHistories(t *testing.T) {
	if *historySeed != 0 {
		history(t, *historySeed)
		return
	}
	for _, seed := range seeds {
		history(t, seed)
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
}

// serverProcess is a lock server and its locks.
type serverProcess struct {
	name   string
	locks  *actors.Locks
	server *remote.LockServer
	wire   *wire
	dead   bool
}

// clientProcess is a process without ZooKeeper.
type clientProcess struct {
	name  string
	locks *actors.Locks
	dead  atomic.Bool // what it believes does not matter any more
	work  sync.WaitGroup
}

// paths are those of the locks.
var paths = []string{"/locks/0", "/locks/1", "/locks/queue"}

const (
	sessionTimeout = 6 * time.Second
	sessionMargin  = 1200 * time.Millisecond
	leaseTime      = 4 * time.Second
)

func history(t *testing.T, seed uint64) {
	zktest.Bubble(t, func(t *testing.T) {
		w := &world{T: t, fabric: newFabric(rand.New(rand.NewPCG(seed, 1))), zk: zktest.Virtual(t), began: time.Now()}
		w.operator = w.zk.Client(t)
		w.ledger = ledger{held: map[string][]believer{}, newest: map[string]actors.Token{}, deleted: map[string]bool{}}
		w.run(rand.New(rand.NewPCG(seed, 2)))
		if t.Failed() {
			t.Logf("by -history.seed %d", seed)
		}
	})
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
	for range r.IntN(12) {
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
	zk := &wire{dial: w.zk.Dial}
	locks, err := actors.Connect(ctx, w.zk.Addr(), actors.Config{SessionTimeout: sessionTimeout, Margin: sessionMargin, Dial: zk.Dial, OmitHolder: true, Logger: w.logger(name)})
	if err != nil {
		w.Fatal(err)
	}
	s, err := remote.NewServer(locks, remote.ServerConfig{Lease: leaseTime, Logger: w.logger(name)})
	if err != nil {
		w.Fatal(err)
	}
	w.servers = append(w.servers, &serverProcess{name: name, locks: locks, server: s, wire: zk})
	w.set(name, s)
}

func (w *world) startClient(name string, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	locks, err := remote.DialBy(ctx, w.dialer(name), w.names, remote.DialConfig{Config: actors.Config{Logger: w.logger(name), Margin: time.Duration(r.IntN(2)) * 500 * time.Millisecond}})
	if err != nil {
		w.Fatal(err)
	}
	c := &clientProcess{name: name, locks: locks}
	w.clients = append(w.clients, c)
	for i := range 1 + r.IntN(3) {
		random := rand.New(rand.NewPCG(r.Uint64(), 3))
		c.work.Go(func() { w.user(c, i, random) })
	}
}

// fault does something bad.
func (w *world) fault(r *rand.Rand) {
	c, s := w.clients[r.IntN(len(w.clients))], w.servers[r.IntN(len(w.servers))]
	d := time.Duration(r.Int64N(int64(10 * time.Second)))
	if s.dead {
		return
	}
	switch what := r.IntN(13); what {
	case 0:
		w.logf("FAULT: cut %s to %s for %v", c.name, s.name, d)
		w.cut(c.name, s.name, d)
	case 1:
		w.logf("FAULT: cut %s to %s for %v", s.name, c.name, d)
		w.cut(s.name, c.name, d)
	case 2:
		w.logf("FAULT: freeze %s for %v", c.name, d)
		for _, name := range w.names {
			w.cut(c.name, name, d)
			w.cut(name, c.name, d)
		}
	case 3:
		w.logf("FAULT: the streams of %s break", s.name)
		w.breakStreams("", s.name)
	case 4:
		w.logf("FAULT: the streams of %s break", c.name)
		w.breakStreams(c.name, "")
	case 5:
		w.logf("FAULT: cut %s from ZooKeeper for %v", s.name, d)
		s.wire.cutOff(d)
	case 6:
		w.logf("FAULT: %s raises the generation, which ends the sessions of all servers", s.name)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if _, err := s.locks.RaiseGeneration(ctx); err != nil {
			w.logf("%v", err) // it is cut off
		}
		cancel()
	case 7:
		w.logf("FAULT: kill %s", s.name)
		w.killServer(s)
		<-time.After(d)
		w.startServer(s.name)
	case 8:
		w.logf("FAULT: drain %s", s.name)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := s.server.Drain(ctx, time.Second); err != nil {
			w.Error(err)
		}
		cancel()
		w.closeServer(s)
		w.startServer(s.name)
	case 10:
		w.logf("FAULT: close %s", s.name)
		w.closeServer(s)
		w.startServer(s.name)
	case 9:
		w.logf("FAULT: kill %s", c.name)
		w.killClient(c)
	case 11, 12:
		path := paths[r.IntN(len(paths))]
		nodes := w.zk.Nodes(w, path)
		if len(nodes) == 0 {
			return
		}
		node := path + "/" + nodes[r.IntN(len(nodes))]
		w.logf("FAULT: delete %s, and cut %s to %s for %v", node, s.name, c.name, d)
		w.cut(s.name, c.name, d)
		w.ledger.noteDeleted(node)
		if err := w.operator.Delete(node, -1); err != nil {
			w.logf("%v", err) // its owner has released it
		}
	}
}

// killServer ends a server without a word: ZooKeeper and the clients hear nothing more of it.
func (w *world) killServer(s *serverProcess) {
	s.dead = true
	w.set(s.name, nil)
	s.wire.cutOff(time.Hour)
	w.breakStreams("", s.name)
}

func (w *world) closeServer(s *serverProcess) {
	s.dead = true
	w.set(s.name, nil)
	if err := s.server.Close(); err != nil {
		w.Error(err)
	}
	w.breakStreams("", s.name)
	s.wire.heal()
	switch err := s.locks.Close(); {
	case err != nil && w.over.Load():
		w.Error(err)
	case err != nil:
		w.logf("%v", err) // it was cut off: its session expires
	}
}

// killClient ends a client without a word.
func (w *world) killClient(c *clientProcess) {
	if c.dead.Swap(true) {
		return
	}
	for _, name := range w.names {
		w.cut(c.name, name, time.Hour)
		w.cut(name, c.name, time.Hour)
	}
	w.breakStreams(c.name, "")
}

// end heals all, has the users end, and checks that nothing is left.
func (w *world) end() {
	w.logf("the faults are over")
	w.heal()
	for _, s := range w.servers {
		if !s.dead {
			s.wire.heal()
		}
	}
	for _, c := range w.clients {
		if c.dead.Load() {
			w.killAgain(c)
		}
	}
	w.over.Store(true)
	before := w.grants.Load()
	<-time.After(30 * time.Second)
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
		if open := c.locks.Open(); len(open) > 0 {
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
			s.locks.Close()
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

// killAgain keeps a dead client cut off.
func (w *world) killAgain(c *clientProcess) {
	for _, name := range w.names {
		w.cut(c.name, name, time.Hour)
		w.cut(name, c.name, time.Hour)
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
