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

// operator is a plain client that does forbidden things to locks.
type operator struct {
	w     *world
	conn  *zk.Conn
	tasks chan func()
	open  atomic.Int32 // tasks that are not done
	ended bool         // it takes no more tasks
	over  chan struct{}
	data  map[string]written // what it wrote to directories
	turns int                // grants of its own
}

// written is what the operator wrote to a directory, which is the one of this czxid.
type written struct {
	data  string
	czxid int64
}

// plainClient connects a client of go-zookeeper.
func (w *world) plainClient(name string, session time.Duration) (*zk.Conn, *host) {
	h := w.net.newHost(name, w.rand(name, 0).Uint64())
	h.plain = true
	conn, _, err := zk.Connect([]string{"127.0.0.1:2181"}, session, zk.WithLogInfo(false), zk.WithLogger(silent{}),
		zk.WithDialer(func(network, address string, _ time.Duration) (net.Conn, error) {
			return h.dial(w.t.Context(), network, address)
		}))
	if err != nil {
		w.t.Fatal(err)
	}
	return conn, h
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func (w *world) newOperator() *operator {
	o := &operator{w: w, tasks: make(chan func(), 1000), over: make(chan struct{}), data: map[string]written{}}
	o.conn, _ = w.plainClient("operator", time.Minute)
	o.do(func() {
		_, err := o.conn.Create(guardedNode, nil, 0, zk.WorldACL(zk.PermAll))
		w.line("operator makes %s: %v", guardedNode, err)
	})
	go func() {
		defer close(o.over)
		for task := range o.tasks {
			task()
			o.open.Add(-1)
		}
		o.conn.Close()
	}()
	return o
}

// do has the operator do something after what it has to do already, or nothing when all is over: the
// plan may have set a time for it after that.
func (o *operator) do(task func()) {
	if o.ended {
		return
	}
	o.open.Add(1)
	o.tasks <- task
}

// end is called once the operator has done all that it has to do.
func (o *operator) end() {
	o.ended = true
	close(o.tasks)
}

// directories are those with contenders, of recipes that a deletion by hand does not break.
func (w *world) directories() (all []string) {
	for path := range w.specs {
		switch {
		case isSimple(path):
		case w.specs[path].permits:
			all = append(all, path+"/locks", path+"/leases")
		default:
			all = append(all, path)
		}
	}
	sort.Strings(all)
	return all
}

// busyDirectory is one with contenders in it, if there is one.
func (w *world) busyDirectory(r *rand.Rand) string {
	all := w.directories()
	var busy []string
	dump := w.server.Dump()
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

// delete deletes a contender's node, all of them, or the directory with them.
func (o *operator) delete(directory string, r *rand.Rand) {
	children, _, err := o.conn.Children(directory)
	if err != nil || len(children) == 0 {
		return
	}
	sort.Strings(children)
	how := r.IntN(6)
	if marker := markers[directory]; how >= 4 && marker != "" {
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
		o.w.line("operator deletes %s: %v", directory, err)
	}
}

// markers are how the operator's own contenders for some locks are named.
var markers = map[string]string{root + "/m0": "-lock-", root + "/m1": "-lock-", root + "/local": "-lock-",
	root + "/rw": "-__WRIT__", root + "/rwlocal": "-__WRIT__"}

// replace deletes a directory and makes it again, in one transaction, with contenders of the operator's
// own in it, which then hold one after the other. It makes numbers contenders unless that is 0, and the
// same transaction deletes all but the last few. No client may read a hidden directory for a second.
func (o *operator) replace(directory, marker string, children []string, numbers int, hidden bool, r *rand.Rand) {
	w := o.w
	var ops, doomed []any
	for _, name := range children {
		ops = append(ops, &zk.DeleteRequest{Path: directory + "/" + name, Version: -1})
	}
	acl, rights := zk.WorldACL(zk.PermAll), int32(zk.PermAll)
	if hidden {
		rights &^= zk.PermRead
		o.w.locked(o.w.denies)
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
			doomed = append(doomed, &zk.DeleteRequest{Path: fmt.Sprintf("%s/%s%010d", directory, name, i), Version: -1})
		}
	}
	ops = append(ops, doomed...)
	is := func(h *holding) bool {
		return slices.ContainsFunc(children, func(name string) bool { return hasNode(directory + "/" + name)(h) })
	}
	w.locked(func() {
		for _, name := range children {
			w.deleted[directory+"/"+name] = w.now()
		}
		w.take(is)
	})
	results, err := o.conn.Multi(ops...)
	w.line("operator replaces %s: %v", directory, err)
	if hidden {
		w.locked(func() { o.giveBack(directory, time.Second) })
	}
	if err != nil {
		for _, name := range children {
			o.kept(directory+"/"+name, err)
		}
		return
	}
	w.locked(func() {
		for _, name := range children {
			w.noteGone(directory + "/" + name)
		}
		w.took(w.now(), is)
	})
	u := use{directory, 0, w.specs[directory].room}
	for i := n - kept; i < n; i++ {
		node := results[first+i].String
		o.turns++
		id := -1_000_000_000 - o.turns
		w.locked(func() {
			w.note(&holding{id: id, owner: "operator", uses: []use{u}, nodes: []string{node}, session: o.conn.SessionID(), foreign: true, process: "operator"})
		})
		hold := time.Duration(r.ExpFloat64()*float64(30*time.Millisecond)) + time.Duration(r.IntN(1_000_000))
		if numbers > 0 { // a process that takes its contender for the first one hears of that later
			hold += 700 * time.Millisecond
		}
		time.Sleep(hold)
		w.locked(func() { w.ended(w.now(), id) })
		for {
			err := o.conn.Delete(node, -1)
			if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrSessionExpired) {
				break
			}
			if errors.Is(err, zk.ErrNoAuth) { // it has taken that right itself
				o.conn.SetACL(directory, acl, -1)
			}
			time.Sleep(100*time.Millisecond + time.Duration(r.IntN(1_000_000)))
		}
	}
}

// deleteOne deletes a child of a directory of those that may reports true for.
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
	w := o.w
	w.locked(func() {
		w.deleted[path] = w.now()
		w.take(hasNode(path))
	})
	err := o.conn.Delete(path, -1)
	w.line("operator deletes %s: %v", path, err)
	o.kept(path, err)
	if err == nil {
		w.locked(func() {
			w.noteGone(path)
			w.took(w.now(), hasNode(path))
		})
	}
}

// kept notes that a node was not deleted, if the error says so.
func (o *operator) kept(path string, err error) {
	o.w.locked(func() {
		_, before := o.w.gone[path]
		if !before && (errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrNotEmpty) || errors.Is(err, zk.ErrNoNode)) {
			delete(o.w.deleted, path)
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
		_, err = o.conn.Set(node, []byte(data), -1)
		o.w.line("operator writes %q to %s: %v", data, node, err)
		return
	}
	o.check(directory)
	data := fmt.Sprintf("data %d", r.IntN(1000))
	stat, err := o.conn.Set(directory, []byte(data), -1)
	o.w.line("operator writes %q to %s: %v", data, directory, err)
	delete(o.data, directory)
	if err == nil {
		o.data[directory] = written{data, stat.Czxid}
	}
}

// check looks whether what was written to a directory is still there.
func (o *operator) check(directory string) {
	was, known := o.data[directory]
	if !known {
		return
	}
	data, stat, err := o.conn.Get(directory)
	if err == nil && stat.Czxid == was.czxid && string(data) != was.data {
		o.w.locked(func() { o.w.fail(o.w.now(), "%s has data %q, where %q was written", directory, data, was.data) })
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
	o.w.locked(o.w.denies)
	_, err := o.conn.SetACL(directory, zk.WorldACL(perms), -1)
	o.w.line("operator leaves rights %#x on %s: %v", perms, directory, err)
	if err != nil && !errors.Is(err, zk.ErrConnectionClosed) {
		o.w.locked(o.w.allow)
		return
	}
	o.w.locked(func() { o.giveBack(directory, span) })
}

// giveBack restores the rights on a directory after a time.
func (o *operator) giveBack(directory string, span time.Duration) {
	o.w.lasting(span, func() {
		o.do(func() {
			var err error
			for range 100 {
				_, err = o.conn.SetACL(directory, zk.WorldACL(zk.PermAll), -1)
				if err == nil || errors.Is(err, zk.ErrNoNode) {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			o.w.locked(o.w.allow)
			o.w.line("operator gives rights on %s back: %v", directory, err)
		})
	})
}

// denies notes that rights are about to be taken away.
func (w *world) denies() {
	w.denied = w.now() + time.Hour
	w.denials++
}

// allow notes that rights are restored. Answers to earlier requests may come for a while.
func (w *world) allow() {
	if w.denials--; w.denials == 0 {
		w.denied = w.now() + time.Minute
	}
}

// sequence sets a directory's counter to near its end.
func (w *world) sequence(directory string, r *rand.Rand) {
	_, rest, found := strings.Cut(w.server.Dump(), "\n"+directory+" ")
	made, _, _ := strings.Cut(rest, " ")
	if !found || w.advanced[directory] == made {
		return // it never goes back
	}
	w.advanced[directory] = made
	n := int32(math.MaxInt32 - r.IntN(100))
	if r.IntN(3) == 0 {
		n = int32(math.MaxInt32 - 1<<20 - r.IntN(3))
	}
	w.line("the counter of %s is %d: %v", directory, n, w.server.SetCreateCount(directory, n))
	w.overflow = true
}
