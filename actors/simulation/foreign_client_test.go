package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// foreignClient is a client of another library, with the names and the algorithm of Curator or
// kazoo: it creates a node, lists the directory, watches its predecessor, and holds when there is
// none.
type foreignClient struct {
	sim      *simulation
	name     string
	id       int
	conn     *zk.Conn
	rand     *rand.Rand
	kazoo    bool
	attempts int
	done     atomic.Bool
}

func (sim *simulation) startForeignClient(i int) {
	f := &foreignClient{sim: sim, name: fmt.Sprintf("foreign%d", i), rand: sim.rand("foreign", i)}
	f.id = -1_000_000 * (i + 1)
	f.kazoo = f.rand.IntN(2) == 0
	sim.foreignClients = append(sim.foreignClients, f)
	f.conn, _ = sim.plainClient(f.name, sim.plan.sessionTimeout)
	go f.work()
}

func (sim *simulation) foreignClientsDone() bool {
	for _, f := range sim.foreignClients {
		if !f.done.Load() {
			return false
		}
	}
	return true
}

func (sim *simulation) areFaultsOver() (over bool) {
	sim.withState(func() { over = sim.faultsOver })
	return over
}

// sleep adds a random time to the pause, so that no two timers fire at the same time.
func (f *foreignClient) sleep(d time.Duration) {
	time.Sleep(d + time.Duration(f.rand.IntN(1_000_000)))
}

func (f *foreignClient) work() {
	defer func() {
		f.conn.Close()
		f.done.Store(true)
	}()
	for !f.sim.areFaultsOver() {
		f.sleep(time.Duration(f.rand.ExpFloat64() * float64(2*time.Second)))
		path, kind, u := root+"/m0", "-lock-", use{root + "/m0", 0, 1}
		if f.kazoo {
			kind = "__lock__"
		} else if f.rand.IntN(2) == 0 {
			path = root + "/rw"
			kind, u = "-__READ__", use{path, 0, 1}
			if f.rand.IntN(2) == 0 {
				kind, u = "-__WRIT__", use{path, 0, rwCapacity}
			}
		}
		f.acquireOnce(path, kind, u)
	}
}

func (f *foreignClient) acquireOnce(path, kind string, u use) {
	f.attempts++
	id := fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", f.rand.Uint32(), f.rand.IntN(1<<16), f.rand.IntN(1<<12), f.rand.IntN(1<<12), f.attempts)
	prefix := "_c_" + id + kind
	if f.kazoo {
		prefix = strings.ReplaceAll(id, "-", "") + kind
	}
	node := f.create(path, prefix)
	if node == "" {
		return
	}
	giveUpAt := f.sim.now() + time.Duration(f.rand.Int64N(int64(30*time.Second)))
	for {
		children, _, err := f.conn.Children(path)
		if errors.Is(err, zk.ErrNoNode) {
			return // another client has deleted the directory
		}
		if err != nil {
			f.sleep(200 * time.Millisecond)
			continue
		}
		if !slices.Contains(children, node) {
			return // another client has deleted the node, or the session is a new one
		}
		before := predecessor(children, node, kind)
		if before == "" {
			f.hold(path, node, u)
			break
		}
		if f.sim.now() > giveUpAt {
			break
		}
		ok, _, changed, err := f.conn.ExistsW(path + "/" + before)
		if err != nil || !ok {
			f.sleep(10 * time.Millisecond)
			continue
		}
		timer := time.NewTimer(2*time.Second + time.Duration(f.rand.IntN(1_000_000)))
		select {
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
	f.delete(path + "/" + node)
}

// create creates the node. If the answer is lost, create searches for the node, as protected
// creates do.
func (f *foreignClient) create(path, prefix string) string {
	f.conn.CreateContainer(path, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
	for range 20 {
		made, err := f.conn.Create(path+"/"+prefix, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		switch {
		case err == nil:
			return made[len(path)+1:]
		case errors.Is(err, zk.ErrNoNode):
			f.conn.CreateContainer(path, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
			continue
		case errors.Is(err, zk.ErrNoAuth):
			return ""
		}
		f.sleep(100 * time.Millisecond)
		children, _, err := f.conn.Children(path)
		if err != nil {
			continue
		}
		if i := slices.IndexFunc(children, func(c string) bool { return strings.HasPrefix(c, prefix) }); i >= 0 {
			return children[i]
		}
	}
	return ""
}

// predecessor returns the last contender that the node has to wait for, or "".
func predecessor(children []string, node, kind string) (last string) {
	mine := sequenceOf(node)
	slices.SortFunc(children, func(a, b string) int { return cmp.Compare(sequenceOf(a), sequenceOf(b)) })
	for _, c := range children {
		if n := sequenceOf(c); n >= 0 && n < mine && (kind != "-__READ__" || !strings.Contains(c, "-__READ__")) {
			last = c
		}
	}
	return last
}

// sequenceOf returns the number at the end of a contender's name, or -1.
func sequenceOf(name string) int64 {
	if len(name) < 10 {
		return -1
	}
	n, err := strconv.ParseInt(name[len(name)-10:], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func (f *foreignClient) hold(path, node string, u use) {
	id := f.id - f.attempts
	session := f.conn.SessionID()
	f.sim.record("%s holds %s/%s", f.name, path, node)
	f.sim.withState(func() {
		f.sim.grants++
		f.sim.noteGrant(&heldGrant{id: id, owner: f.name, uses: []use{u}, nodes: []string{path + "/" + node}, session: session, foreign: true, process: f.name})
	})
	f.sleep(time.Duration(f.rand.ExpFloat64() * float64(100*time.Millisecond)))
	f.sim.record("%s is done with %s/%s", f.name, path, node)
	f.sim.withState(func() { f.sim.ended(f.sim.now(), id) })
}

// delete repeats the deletion until the node is gone.
func (f *foreignClient) delete(path string) {
	for {
		err := f.conn.Delete(path, -1)
		if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired) {
			return
		}
		f.sleep(100 * time.Millisecond)
	}
}
