// Package watches knows which recipients the change of a node wakes.
package watches

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// Table holds which recipients a change of a node wakes. The children of a directory are under the
// path of [zkpath.Children].
//
// Each Watcher is in byPath[path] and in byRecipient[to][path], or in neither.
type Table struct {
	Epoch uint64       // that a Wake names
	Log   *slog.Logger // see reply.To

	byPath      map[string][]*Watcher
	byRecipient map[ask.Recipient]map[string]*Watcher
}

// Watcher is the interest of one recipient in one node, from its first read of the node to the
// first event. Another recipient's watch may cause that event; the watch that is being set then
// fires without a watcher. A recipient that was woken asks again if it still wants to know, and
// that makes a new watcher.
type Watcher struct {
	to          ask.Recipient
	path        string
	pending     int       // reads of the node that are not answered
	behind      int       // those of them that the server executes behind a request that sets the watch
	early       bool      // an event came before the answers of those
	set         bool      // ZooKeeper has a watch on the node
	confirmedAt time.Time // when the watch was set, or the leader last confirmed the node; see leadercheck.go
}

// CheckComparable returns an error if a recipient cannot be told apart from others: one that
// subscribes or watches must be.
func CheckComparable(to ask.Recipient) error {
	if to == nil || reflect.ValueOf(to).Comparable() {
		return nil
	}
	return fmt.Errorf("a recipient of type %T cannot be compared with ==: to subscribe or watch takes one that can, such as a pointer", to)
}

// Add notes that a read is under way which will set a watch. It returns nil if there is no
// recipient.
func (t *Table) Add(to ask.Recipient, path string) *Watcher {
	if to == nil {
		return nil
	}
	if w := t.byRecipient[to][path]; w != nil {
		w.pending++
		return w
	}
	if t.byPath == nil {
		t.byPath, t.byRecipient = map[string][]*Watcher{}, map[ask.Recipient]map[string]*Watcher{}
	}
	w := &Watcher{to: to, path: path, pending: 1}
	t.byPath[path] = append(t.byPath[path], w)
	if t.byRecipient[to] == nil {
		t.byRecipient[to] = map[string]*Watcher{}
	}
	t.byRecipient[to][path] = w
	return w
}

// SetFirst notes that a request sets the watch before one of the pending reads is executed. The events
// of that watch come before the answer, and are not for the recipient: the read shows more.
func (w *Watcher) SetFirst() {
	if w != nil {
		w.behind++
	}
}

// OnReadBehind notes that a read of which SetFirst was called is answered, and reports whether an event
// has ended the watch: then the node may have changed again behind the read.
func (w *Watcher) OnReadBehind() (ended bool) {
	if w == nil {
		return false
	}
	ended = w.early
	if w.behind--; w.behind == 0 {
		w.early = false
	}
	return ended
}

// OnRead notes whether a read has set the watch. An earlier read may have set it.
func (t *Table) OnRead(w *Watcher, set bool) {
	if w == nil {
		return
	}
	w.pending--
	if set {
		w.set, w.confirmedAt = true, time.Now()
	} else if w.pending == 0 && !w.set && t.byRecipient[w.to][w.path] == w {
		t.Remove(w.to, w.path)
	}
}

// Paths returns the nodes that have a watch, and the directories whose children have one.
func (t *Table) Paths() (nodes, directories []string) {
	for path, list := range t.byPath {
		if !slices.ContainsFunc(list, func(w *Watcher) bool { return w.set }) {
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

// UnchangedSince returns the watched nodes that existed at a time and have not changed since.
func (t *Table) UnchangedSince(at time.Time) (nodes []string) {
	for path, list := range t.byPath {
		if _, node := zkpath.Split(path); node == "" {
			continue
		}
		if slices.ContainsFunc(list, func(w *Watcher) bool { return w.set && !w.confirmedAt.After(at) }) {
			nodes = append(nodes, path)
		}
	}
	return nodes
}

// Confirmed notes that the leader has a node.
func (t *Table) Confirmed(path string) {
	for _, w := range t.byPath[path] {
		w.confirmedAt = time.Now()
	}
}

// Remove removes a watcher.
func (t *Table) Remove(to ask.Recipient, path string) {
	if list := slices.DeleteFunc(t.byPath[path], func(w *Watcher) bool { return w.to == to }); len(list) > 0 {
		t.byPath[path] = list
	} else {
		delete(t.byPath, path)
	}
	t.unlink(to, path)
}

// DropAll removes all watchers of one recipient.
func (t *Table) DropAll(to ask.Recipient) {
	for path := range t.byRecipient[to] {
		t.Remove(to, path)
	}
}

// Has reports whether a recipient is interested in the node of a path.
func (t *Table) Has(path string) bool { return len(t.byPath[path]) > 0 }

// OnEvent wakes all recipients that an event at a path concerns.
func (t *Table) OnEvent(path string, deleted bool) {
	t.fire(path, deleted)
	if deleted {
		t.fire(zkpath.Children(path), true)
	}
}

// fire wakes and removes the watchers of a path, but for those that only SetFirst was called for.
func (t *Table) fire(path string, deleted bool) {
	list := t.byPath[path]
	if len(list) == 0 {
		return
	}
	delete(t.byPath, path)
	directory, node := zkpath.Split(path)
	wake := &messages.Wake{Epoch: t.Epoch, Directory: directory, Node: node, Deleted: deleted}
	for _, w := range list {
		if !w.set && w.behind > 0 && w.behind == w.pending {
			w.early = true
			t.byPath[path] = append(t.byPath[path], w)
			continue
		}
		t.unlink(w.to, path)
		reply.To{Recipient: w.to, Log: t.Log}.Tell(wake)
	}
}

func (t *Table) unlink(to ask.Recipient, path string) {
	delete(t.byRecipient[to], path)
	if len(t.byRecipient[to]) == 0 {
		delete(t.byRecipient, to)
	}
}
