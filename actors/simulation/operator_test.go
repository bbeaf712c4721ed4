package simulation

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors/queue"
)

// operator is a plain client that breaks the rules of the locks.
type operator struct {
	sim       *simulation
	conn      *zk.Conn
	tasks     chan func()
	openTasks atomic.Int32 // tasks that are not done
	ended     bool         // it takes no more tasks
	closed    chan struct{}
	written   map[string]written // what it wrote to directories
	grants    int                // of its own contenders
}

// written is what the operator wrote to the directory with this czxid.
type written struct {
	data  string
	czxid int64
}

// plainClient connects a client of go-zookeeper.
func (sim *simulation) plainClient(name string, session time.Duration) (*zk.Conn, *host) {
	h := sim.network.newHost(name, sim.rand(name, 0).Uint64())
	h.plain = true
	conn, _, err := zk.Connect([]string{"127.0.0.1:2181"}, session, zk.WithLogInfo(false), zk.WithLogger(silent{}),
		zk.WithDialer(func(network, address string, _ time.Duration) (net.Conn, error) {
			return h.dial(sim.t.Context(), network, address)
		}))
	if err != nil {
		sim.t.Fatal(err)
	}
	return conn, h
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func (sim *simulation) newOperator() *operator {
	o := &operator{sim: sim, tasks: make(chan func(), 1000), closed: make(chan struct{}), written: map[string]written{}}
	o.conn, _ = sim.plainClient("operator", time.Minute)
	o.do(func() {
		_, err := o.conn.Create(guardedNode, nil, 0, zk.WorldACL(zk.PermAll))
		sim.record("operator makes %s: %v", guardedNode, err)
		sim.withState(func() { sim.backups = append(sim.backups, sim.server.Backup()) })
	})
	go func() {
		defer close(o.closed)
		for task := range o.tasks {
			task()
			o.openTasks.Add(-1)
		}
		o.conn.Close()
	}()
	return o
}

// do has the operator execute a task after all earlier ones. After the end of the run do ignores
// the task: the plan may have set a time after that.
func (o *operator) do(task func()) {
	if o.ended {
		return
	}
	o.openTasks.Add(1)
	o.tasks <- task
}

// stop ends the operator. All of its tasks are done.
func (o *operator) stop() {
	o.ended = true
	close(o.tasks)
}

// queueDirectories returns the directories with contenders.
func (sim *simulation) queueDirectories() (all []string) {
	for path := range sim.specs {
		switch {
		case sim.specs[path].permits:
			all = append(all, path+"/locks", path+"/leases")
		default:
			all = append(all, path)
		}
	}
	sort.Strings(all)
	return all
}

// directoryInUse returns a random directory with contenders in it, if there is one.
func (sim *simulation) directoryInUse(r *rand.Rand) string {
	all := sim.queueDirectories()
	var busy []string
	dump := sim.server.Dump()
	for _, path := range all {
		if strings.Contains(dump, path+"/_c_") {
			busy = append(busy, path)
		}
	}
	if len(busy) == 0 || r.IntN(10) == 0 {
		return pick(r, all)
	}
	return pick(r, busy)
}

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// delete deletes a contender's node, all nodes of the directory, or the directory with them.
func (o *operator) delete(directory string, r *rand.Rand) {
	children, _, err := o.conn.Children(directory)
	if err != nil || len(children) == 0 {
		return
	}
	sort.Strings(children)
	how := r.IntN(6)
	if marker := contenderMarkers[directory]; how >= 4 && marker != "" {
		o.replace(directory, marker, children, 0, false, r)
		return
	}
	if how > 1 {
		children = []string{pick(r, children)}
	}
	for _, name := range children {
		o.deleteNode(directory + "/" + name)
	}
	if how == 0 {
		err := o.conn.Delete(directory, -1)
		o.sim.record("operator deletes %s: %v", directory, err)
	}
}

// contenderMarkers name the operator's own contenders in some directories.
var contenderMarkers = map[string]string{root + "/m0": "-lock-", root + "/m1": "-lock-", root + "/local": "-lock-",
	root + "/rw": "-__WRIT__", root + "/rwlocal": "-__WRIT__"}

// replace deletes a directory and creates it again, in one transaction, with the operator's own
// contenders in it, which then hold one after the other. If numbers is not 0, replace creates so
// many contenders, and the same transaction deletes all but the last few. If hidden is set, no
// client may read the directory for a second.
func (o *operator) replace(directory, marker string, children []string, numbers int, hidden bool, r *rand.Rand) {
	sim := o.sim
	var ops, deletes []any
	for _, name := range children {
		ops = append(ops, &zk.DeleteRequest{Path: directory + "/" + name, Version: -1})
	}
	acl, rights := zk.WorldACL(zk.PermAll), int32(zk.PermAll)
	if hidden {
		rights &^= zk.PermRead
		o.sim.withState(o.sim.beginDenial)
	}
	ops = append(ops, &zk.DeleteRequest{Path: directory, Version: -1}, &zk.CreateRequest{Path: directory, Acl: zk.WorldACL(rights)})
	first, n := len(ops), 1+r.IntN(3)
	kept := n
	if numbers > 0 {
		n, kept = numbers, min(n, numbers)
	}
	for i := range n {
		name := fmt.Sprintf("_c_%08x-%04x-4%03x-8%03x-%012x%s", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Int64N(1<<40), marker)
		ops = append(ops, &zk.CreateRequest{Path: directory + "/" + name, Acl: acl, Flags: zk.FlagEphemeral | zk.FlagSequence})
		if i < n-kept {
			deletes = append(deletes, &zk.DeleteRequest{Path: fmt.Sprintf("%s/%s%010d", directory, name, i), Version: -1})
		}
	}
	ops = append(ops, deletes...)
	onNodes := func(h *heldGrant) bool {
		return slices.ContainsFunc(children, func(name string) bool { return hasNode(directory + "/" + name)(h) })
	}
	sim.withState(func() {
		for _, name := range children {
			sim.deletionStarted[directory+"/"+name] = sim.now()
		}
		sim.beginInvalidation(onNodes)
	})
	results, err := o.conn.Multi(ops...)
	sim.record("operator replaces %s: %v", directory, err)
	if hidden {
		sim.withState(func() { o.restoreRights(directory, time.Second) })
	}
	if err != nil {
		for _, name := range children {
			o.noteNotDeleted(directory+"/"+name, err)
		}
		return
	}
	sim.withState(func() {
		for _, name := range children {
			sim.noteForcedDeletion(directory + "/" + name)
		}
		sim.invalidate(sim.now(), onNodes)
	})
	u := use{directory, 0, sim.specs[directory].capacity}
	for i := n - kept; i < n; i++ {
		node := results[first+i].String
		o.grants++
		id := -1_000_000_000 - o.grants
		sim.withState(func() {
			sim.noteGrant(&heldGrant{id: id, owner: "operator", uses: []use{u}, nodes: []string{node}, session: o.conn.SessionID(), foreign: true, process: "operator"})
		})
		hold := time.Duration(r.ExpFloat64()*float64(30*time.Millisecond)) + time.Duration(r.IntN(1_000_000))
		if numbers > 0 { // a process that ranks its contender first learns of the replacement later
			hold += 700 * time.Millisecond
		}
		time.Sleep(hold)
		sim.withState(func() { sim.ended(sim.now(), id) })
		for {
			err := o.conn.Delete(node, -1)
			if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrSessionExpired) {
				break
			}
			if errors.Is(err, zk.ErrNoAuth) { // the operator itself has taken the right away
				o.conn.SetACL(directory, acl, -1)
			}
			time.Sleep(100*time.Millisecond + time.Duration(r.IntN(1_000_000)))
		}
	}
}

// deleteOne deletes a random child of a directory, of those for which may reports true.
func (o *operator) deleteOne(directory string, r *rand.Rand, may func(name string) bool) {
	children, _, err := o.conn.Children(directory)
	children = slices.DeleteFunc(children, func(name string) bool { return !may(name) })
	if err != nil || len(children) == 0 {
		return
	}
	sort.Strings(children)
	o.deleteNode(directory + "/" + pick(r, children))
}

// deleteNode deletes a node. Its holder may believe in its grant for a while.
func (o *operator) deleteNode(path string) {
	sim := o.sim
	sim.withState(func() {
		sim.deletionStarted[path] = sim.now()
		sim.beginInvalidation(hasNode(path))
	})
	err := o.conn.Delete(path, -1)
	sim.record("operator deletes %s: %v", path, err)
	o.noteNotDeleted(path, err)
	if err == nil {
		sim.withState(func() {
			sim.noteForcedDeletion(path)
			sim.invalidate(sim.now(), hasNode(path))
		})
	}
}

// noteNotDeleted notes that a node was not deleted, if the error says so.
func (o *operator) noteNotDeleted(path string, err error) {
	o.sim.withState(func() {
		_, before := o.sim.deletedAt[path]
		if !before && (errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrNotEmpty) || errors.Is(err, zk.ErrNoNode)) {
			delete(o.sim.deletionStarted, path)
		}
	})
}

// write writes data to a directory, or to a contender's node.
func (o *operator) write(directory string, r *rand.Rand) {
	if r.IntN(2) == 0 {
		children, _, err := o.conn.Children(directory)
		if err != nil || len(children) == 0 {
			return
		}
		sort.Strings(children)
		data := pick(r, []string{queue.RevokeData, "", "something", "__REVOKE__ "})
		node := directory + "/" + pick(r, children)
		if data == queue.RevokeData {
			o.sim.withState(func() { o.sim.askedFor[node] = true })
		}
		_, err = o.conn.Set(node, []byte(data), -1)
		o.sim.record("operator writes %q to %s: %v", data, node, err)
		return
	}
	o.checkData(directory)
	data := fmt.Sprintf("data %d", r.IntN(1000))
	stat, err := o.conn.Set(directory, []byte(data), -1)
	o.sim.record("operator writes %q to %s: %v", data, directory, err)
	delete(o.written, directory)
	if err == nil {
		o.written[directory] = written{data, stat.Czxid}
	}
}

// checkData checks that the data of a directory is what the operator wrote.
func (o *operator) checkData(directory string) {
	was, known := o.written[directory]
	if !known {
		return
	}
	data, stat, err := o.conn.Get(directory)
	if err == nil && stat.Czxid == was.czxid && string(data) != was.data {
		o.sim.withState(func() { o.sim.fail(o.sim.now(), "%s has data %q, where %q was written", directory, data, was.data) })
	}
}

// deny takes rights on a directory away, and restores them after a time.
func (o *operator) deny(directory string, r *rand.Rand, span time.Duration) {
	perms := int32(zk.PermAdmin)
	for _, one := range []int32{zk.PermRead, zk.PermCreate, zk.PermDelete, zk.PermWrite} {
		if r.IntN(2) == 0 {
			perms |= one
		}
	}
	o.sim.withState(o.sim.beginDenial)
	_, err := o.conn.SetACL(directory, zk.WorldACL(perms), -1)
	o.sim.record("operator leaves rights %#x on %s: %v", perms, directory, err)
	if err != nil && !errors.Is(err, zk.ErrConnectionClosed) {
		o.sim.withState(o.sim.endDenial)
		return
	}
	o.sim.withState(func() { o.restoreRights(directory, span) })
}

// restoreRights restores the rights on a directory after a time.
func (o *operator) restoreRights(directory string, span time.Duration) {
	o.sim.undoAfter(span, func() {
		o.do(func() {
			var err error
			for range 100 {
				_, err = o.conn.SetACL(directory, zk.WorldACL(zk.PermAll), -1)
				if err == nil || errors.Is(err, zk.ErrNoNode) {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			o.sim.withState(o.sim.endDenial)
			o.sim.record("operator gives rights on %s back: %v", directory, err)
		})
	})
}

// beginDenial notes that rights are about to be taken away.
func (sim *simulation) beginDenial() {
	sim.deniedUntil = sim.now() + time.Hour
	sim.denials++
}

// endDenial notes that rights are restored. Answers to earlier requests may still report missing
// rights for a while.
func (sim *simulation) endDenial() {
	if sim.denials--; sim.denials == 0 {
		sim.deniedUntil = sim.now() + time.Minute
	}
}

// advanceCounter sets a directory's counter of sequence numbers to near its end: where requests
// begin to wait outside the queue, where they begin to be refused, or to the last numbers.
func (sim *simulation) advanceCounter(directory string, r *rand.Rand) {
	_, rest, found := strings.Cut(sim.server.Dump(), "\n"+directory+" ")
	made, _, _ := strings.Cut(rest, " ")
	if !found || sim.advancedCounters[directory] == made {
		return // the counter never goes back
	}
	sim.advancedCounters[directory] = made
	n := int32(math.MaxInt32 - r.IntN(100))
	switch r.IntN(3) {
	case 0:
		n = int32(math.MaxInt32 - 1<<20 - r.IntN(3))
	case 1:
		n = int32(math.MaxInt32 - 1<<16 - r.IntN(10))
	}
	sim.record("the counter of %s is %d: %v", directory, n, sim.server.SetCreateCount(directory, n))
	sim.nearOverflow, sim.numbersUsedUp = true, sim.numbersUsedUp || n > math.MaxInt32-1<<17
}
