package zkbridge

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// watchTable holds which recipients a change of a node wakes. The children of a directory are under
// the path of [zkpath.Children]. The zero value is empty.
//
// Each watcher is in byPath[path] and in byRecipient[to][path], or in neither.
type watchTable struct {
	byPath      map[string][]*watcher
	byRecipient map[ask.Recipient]map[string]*watcher
}

// watcher is the interest of one recipient in one node, from its first read of the node to the
// first event. Another recipient's watch may cause that event; the watch that is being set then
// fires without a watcher. A recipient that was woken asks again if it still wants to know, and
// that makes a new watcher.
type watcher struct {
	to          ask.Recipient
	path        string
	pending     int       // reads of the node that are not answered
	set         bool      // ZooKeeper has a watch on the node
	confirmedAt time.Time // when the watch was set, or the leader last confirmed the node; see leadercheck.go
}

// checkComparable returns an error if a recipient cannot be told apart from others: one that
// subscribes or watches must be.
func checkComparable(to ask.Recipient) error {
	if to == nil || reflect.ValueOf(to).Comparable() {
		return nil
	}
	return fmt.Errorf("a recipient of type %T cannot be compared with ==: to subscribe or watch takes one that can, such as a pointer", to)
}

// add notes that a read is under way which will set a watch. It returns nil if there is no
// recipient.
func (t *watchTable) add(to ask.Recipient, path string) *watcher {
	if to == nil {
		return nil
	}
	if w := t.byRecipient[to][path]; w != nil {
		w.pending++
		return w
	}
	if t.byPath == nil {
		t.byPath, t.byRecipient = map[string][]*watcher{}, map[ask.Recipient]map[string]*watcher{}
	}
	w := &watcher{to: to, path: path, pending: 1}
	t.byPath[path] = append(t.byPath[path], w)
	if t.byRecipient[to] == nil {
		t.byRecipient[to] = map[string]*watcher{}
	}
	t.byRecipient[to][path] = w
	return w
}

// onRead notes whether a read has set the watch. An earlier read may have set it.
func (t *watchTable) onRead(w *watcher, set bool) {
	if w == nil {
		return
	}
	w.pending--
	if set {
		w.set, w.confirmedAt = true, time.Now()
	} else if w.pending == 0 && !w.set && t.byRecipient[w.to][w.path] == w {
		t.remove(w.to, w.path)
	}
}

// paths returns the nodes that have a watch, and the directories whose children have one.
func (t *watchTable) paths() (nodes, directories []string) {
	for path, list := range t.byPath {
		if !slices.ContainsFunc(list, func(w *watcher) bool { return w.set }) {
			continue
		}
		if directory, node := zkpath.Split(path); node == "" {
			directories = append(directories, directory)
		} else {
			nodes = append(nodes, path)
		}
	}
	slices.Sort(nodes)
	slices.Sort(directories)
	return nodes, directories
}

// unchangedSince returns the watched nodes that existed at a time and have not changed since.
func (t *watchTable) unchangedSince(at time.Time) (nodes []string) {
	for path, list := range t.byPath {
		if _, node := zkpath.Split(path); node == "" {
			continue
		}
		if slices.ContainsFunc(list, func(w *watcher) bool { return w.set && !w.confirmedAt.After(at) }) {
			nodes = append(nodes, path)
		}
	}
	return nodes
}

// confirmed notes that the leader has a node.
func (t *watchTable) confirmed(path string) {
	for _, w := range t.byPath[path] {
		w.confirmedAt = time.Now()
	}
}

// remove removes a watcher.
func (t *watchTable) remove(to ask.Recipient, path string) {
	if list := slices.DeleteFunc(t.byPath[path], func(w *watcher) bool { return w.to == to }); len(list) > 0 {
		t.byPath[path] = list
	} else {
		delete(t.byPath, path)
	}
	t.unlink(to, path)
}

// dropAll removes all watchers of one recipient.
func (t *watchTable) dropAll(to ask.Recipient) {
	for path := range t.byRecipient[to] {
		t.remove(to, path)
	}
}

// onEvent wakes all recipients that an event at a path concerns.
func (t *watchTable) onEvent(ep *epoch, path string, deleted bool) {
	t.fire(ep, path, deleted)
	if deleted {
		t.fire(ep, zkpath.Children(path), true)
	}
}

// fire wakes and removes the watchers of a path.
func (t *watchTable) fire(ep *epoch, path string, deleted bool) {
	list := t.byPath[path]
	if len(list) == 0 {
		return
	}
	delete(t.byPath, path)
	directory, node := zkpath.Split(path)
	wake := &messages.Wake{Epoch: ep.number, Directory: directory, Node: node, Deleted: deleted}
	for _, w := range list {
		t.unlink(w.to, path)
		reply.To{Recipient: w.to, Log: ep.actor.cfg.Log}.Tell(wake)
	}
}

// unwatchDirectory takes back the writer's watch on a directory itself, which would stay for as long
// as the directory and the connection. (A container goes when it is idle, and its watch with it.)
func (ep *epoch) unwatchDirectory(path string) {
	if !ep.writer.Unwatch(path) {
		return
	}
	ep.surveys.Add(func(end func(func())) { // no caller waits for it
		done := func() { end(func() {}) }
		if ep.writer.IsWatched(path) || len(ep.watches.byPath[path]) > 0 || path == GenerationPath { // the server has one watch for all
			done()
			return
		}
		ep.client.RemoveWatch(path, done)
	})
}

func (t *watchTable) unlink(to ask.Recipient, path string) {
	delete(t.byRecipient[to], path)
	if len(t.byRecipient[to]) == 0 {
		delete(t.byRecipient, to)
	}
}
