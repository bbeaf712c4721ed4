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

// foreigner is a client of another library, with Curator's or kazoo's names and habits: it
// creates a node, lists, watches its predecessor and holds when there is none.
type foreigner struct {
	w      *world
	name   string
	id     int
	conn   *zk.Conn
	rand   *rand.Rand
	kazoo  bool
	turns  int
	over   atomic.Bool
	up     bool
	events chan struct{} // something has changed
}

func (w *world) startForeigner(i int) {
	f := &foreigner{w: w, name: fmt.Sprintf("foreign%d", i), rand: w.rand("foreign", i), events: make(chan struct{}, 1), up: true}
	f.id = -1_000_000 * (i + 1)
	f.kazoo = f.rand.IntN(2) == 0
	w.foreign = append(w.foreign, f)
	f.conn, _ = w.plainClient(f.name, w.plan.session)
	go f.work()
}

func (w *world) foreignersAreDone() bool {
	for _, f := range w.foreign {
		if !f.over.Load() {
			return false
		}
	}
	return true
}

func (w *world) isHealing() (healing bool) {
	w.locked(func() { healing = w.healing })
	return healing
}

// sleep waits for a time of its own, so that two timers do not fire at once.
func (f *foreigner) sleep(d time.Duration) {
	time.Sleep(d + time.Duration(f.rand.IntN(1_000_000)))
}

func (f *foreigner) work() {
	defer func() {
		f.conn.Close()
		f.over.Store(true)
	}()
	for !f.w.isHealing() {
		f.sleep(time.Duration(f.rand.ExpFloat64() * float64(2*time.Second)))
		path, kind, u := root+"/m0", "-lock-", use{root + "/m0", 0, 1}
		if f.kazoo {
			kind = "__lock__"
		} else if f.rand.IntN(2) == 0 {
			path = root + "/rw"
			kind, u = "-__READ__", use{path, 0, 1}
			if f.rand.IntN(2) == 0 {
				kind, u = "-__WRIT__", use{path, 0, allReaders}
			}
		}
		f.turn(path, kind, u)
	}
}

func (f *foreigner) turn(path, kind string, u use) {
	f.turns++
	id := fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", f.rand.Uint32(), f.rand.IntN(1<<16), f.rand.IntN(1<<12), f.rand.IntN(1<<12), f.turns)
	prefix := "_c_" + id + kind
	if f.kazoo {
		prefix = strings.ReplaceAll(id, "-", "") + kind
	}
	node := f.create(path, prefix)
	if node == "" {
		return
	}
	patience := f.w.now() + time.Duration(f.rand.Int64N(int64(30*time.Second)))
	for {
		children, _, err := f.conn.Children(path)
		if errors.Is(err, zk.ErrNoNode) {
			return // another client has deleted everything
		}
		if err != nil {
			f.sleep(200 * time.Millisecond)
			continue
		}
		if !slices.Contains(children, node) {
			return // another client has deleted it, or the session is another one
		}
		before := predecessor(children, node, kind)
		if before == "" {
			f.hold(path, node, u)
			break
		}
		if f.w.now() > patience {
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

// create makes the node; it looks for it if the answer is lost, as protected creates do.
func (f *foreigner) create(path, prefix string) string {
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

// predecessor is the last of those that a node has to wait for.
func predecessor(children []string, node, kind string) (last string) {
	mine := sequence(node)
	slices.SortFunc(children, func(a, b string) int { return cmp.Compare(sequence(a), sequence(b)) })
	for _, c := range children {
		if n := sequence(c); n >= 0 && n < mine && (kind != "-__READ__" || !strings.Contains(c, "-__READ__")) {
			last = c
		}
	}
	return last
}

// sequence returns the number at the end of a contender's name, or -1.
func sequence(name string) int64 {
	if len(name) < 10 {
		return -1
	}
	n, err := strconv.ParseInt(name[len(name)-10:], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func (f *foreigner) hold(path, node string, u use) {
	id := f.id - f.turns
	session := f.conn.SessionID()
	f.w.line("%s holds %s/%s", f.name, path, node)
	f.w.locked(func() {
		f.w.grants++
		f.w.note(&holding{id: id, owner: f.name, uses: []use{u}, nodes: []string{path + "/" + node}, session: session, foreign: true, process: f.name})
	})
	f.sleep(time.Duration(f.rand.ExpFloat64() * float64(100*time.Millisecond)))
	f.w.line("%s is done with %s/%s", f.name, path, node)
	f.w.locked(func() { f.w.ended(f.w.now(), id) })
}

// delete goes on until the node is gone.
func (f *foreigner) delete(path string) {
	for {
		err := f.conn.Delete(path, -1)
		if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired) {
			return
		}
		f.sleep(100 * time.Millisecond)
	}
}
