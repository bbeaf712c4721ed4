package zkbridge

import (
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// watchTable tells who is to be woken by which node. The zero value is empty.
type watchTable struct {
	byPath map[string][]watcher
	byWho  map[ask.Recipient]map[string]struct{}
}

// watcher is one recipient's interest in one node.
type watcher struct {
	to ask.Recipient
	// pending counts its reads of the node that are not answered. Until they are,
	// an event does not end the interest: it may stem from somebody else's watch,
	// and the one that is being set would fire unheard.
	pending int
	// set: a watch is in place.
	set bool
}

func (t *watchTable) add(to ask.Recipient, path string) {
	if to == nil {
		return
	}
	if w := t.find(to, path); w != nil {
		w.pending++
		return
	}
	if t.byPath == nil {
		t.byPath, t.byWho = map[string][]watcher{}, map[ask.Recipient]map[string]struct{}{}
	}
	t.byPath[path] = append(t.byPath[path], watcher{to: to, pending: 1})
	if t.byWho[to] == nil {
		t.byWho[to] = map[string]struct{}{}
	}
	t.byWho[to][path] = struct{}{}
}

// confirm notes that a read has set the watch.
func (t *watchTable) confirm(to ask.Recipient, path string) {
	if w := t.find(to, path); w != nil && w.pending > 0 {
		w.pending--
		w.set = true
	}
}

// giveUp notes that a read has failed. An earlier one may have set a watch.
func (t *watchTable) giveUp(to ask.Recipient, path string) {
	w := t.find(to, path)
	if w == nil {
		return
	}
	w.pending--
	if w.pending <= 0 && !w.set {
		t.remove(to, path)
	}
}

// remove ends an interest.
func (t *watchTable) remove(to ask.Recipient, path string) {
	list := t.byPath[path]
	for i := range list {
		if list[i].to == to {
			list[i] = list[len(list)-1]
			t.keep(path, list[:len(list)-1])
			t.unlink(to, path)
			return
		}
	}
}

// dropAll ends all interests of one recipient.
func (t *watchTable) dropAll(to ask.Recipient) {
	for path := range t.byWho[to] {
		t.remove(to, path)
	}
}

// fire wakes those who are interested. A watch fires once, and a deleted node does
// not come back: its name has a number that is not given again.
func (t *watchTable) fire(ep *epoch, path string, deleted bool) {
	list := t.byPath[path]
	if len(list) == 0 {
		return
	}
	directory, node := splitPath(path)
	wake := &messages.Wake{Epoch: ep.number, Directory: directory, Node: node, Deleted: deleted}
	left := list[:0]
	for _, w := range list {
		if w.pending > 0 && !deleted {
			w.set = false
			left = append(left, w)
		} else {
			t.unlink(w.to, path)
		}
		w.to.Tell(wake)
	}
	t.keep(path, left)
}

func (t *watchTable) find(to ask.Recipient, path string) *watcher {
	list := t.byPath[path]
	for i := range list {
		if list[i].to == to {
			return &list[i]
		}
	}
	return nil
}

func (t *watchTable) keep(path string, list []watcher) {
	if len(list) == 0 {
		delete(t.byPath, path)
		return
	}
	t.byPath[path] = list
}

func (t *watchTable) unlink(to ask.Recipient, path string) {
	delete(t.byWho[to], path)
	if len(t.byWho[to]) == 0 {
		delete(t.byWho, to)
	}
}
