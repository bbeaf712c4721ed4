package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// A holder may want to know whether other contenders wait for the lock.

// contentionWatch is the watch on the directory that notices contenders of other processes. It must
// not be left behind, and the bridge does not take it back: it ends with the next change in the
// directory, which is the deletion of the holder's own node at the latest. If another client
// deletes that node before the list sets the watch, the watch stays until another contender comes,
// or until ZooKeeper removes the empty directory. A client that may not read the directory at that
// moment hears nothing of the change that has ended its watch: the deletion of an own node shows
// that it has ended.
type contentionWatch struct {
	wanted      bool     // a request with NotifyContended has ever been made
	set         bool     // the watch is set, or being set, and no Wake has come of it
	later       bool     // the watch has ended among many contenders: the next Tick sets it; only if it is not set
	requested   bool     // the ListDirectory in flight sets it
	deleteAfter []*entry // entries whose nodes are deleted once that is answered, and not before
}

// maxAtOnce is among how many contenders the watch is set again as soon as it has ended. Among more
// of them it is set by the next Tick: to set it takes a list of all, and each of many processes
// that read would list all others whenever one comes or goes.
const maxAtOnce = 64

// watchContention sends NotifyContended to the holders for which others wait. If there is none, it
// has the coming of another contender noticed. Step calls it after every event.
func (s *State) watchContention() {
	if !s.contention.wanted {
		return
	}
	for e := range own(s.holders) {
		if e.wantsContention() && s.contended(e) {
			s.notifyContended(e)
		}
	}
	if !s.contention.set && !s.contention.later && s.awaitsContention() {
		s.requestList()
	}
}

func (e *entry) wantsContention() bool {
	return e.stage == held && slices.ContainsFunc(e.requests, func(r request) bool { return r.notifyContended })
}

// awaitsContention reports whether a holder wants to know of contention and does not know of any.
func (s *State) awaitsContention() bool {
	for e := range own(s.holders) {
		if e.wantsContention() {
			return true
		}
	}
	return false
}

// contended reports whether a contender of another process waits because of e, or may do so.
func (s *State) contended(e *entry) bool {
	if queue.NearEnd(s.numbers.highest) {
		return true // those of other processes wait outside unseen
	}
	for kind, blockedBy := range s.rule.BlockedBy {
		if s.foreign == 0 || !blockedBy.Has(e.kind) {
			continue
		}
		for _, c := range slices.Backward(s.ofKind(queue.Kind(kind))) {
			if c.seq <= e.seq {
				break
			}
			if c.entry == nil && s.blockersAhead(c.kind, c.seq) >= s.rule.Permits {
				return true
			}
		}
	}
	return false
}

func (s *State) notifyContended(e *entry) {
	for i := range e.requests {
		if r := &e.requests[i]; r.notifyContended {
			r.notifyContended = false
			s.add(requests.NotifyContended, r.id)
		}
	}
}

// takeDirectoryWatch reports whether the list that is about to be asked for is to set the watch,
// and notes that it does.
func (s *State) takeDirectoryWatch() bool {
	if !s.contention.wanted || s.contention.set || !s.awaitsContention() {
		return false
	}
	s.contention.set, s.contention.requested, s.contention.later = true, true, false
	return true
}

// listArrived notes that the list in flight is answered. set reports whether the watch stands if
// the list was to set it.
func (s *State) listArrived(set bool) {
	if !s.contention.requested {
		return
	}
	before := s.contention.deleteAfter
	s.contention.requested, s.contention.deleteAfter = false, nil
	s.contention.set = s.contention.set && set
	for _, e := range before {
		if s.delay.isOf(e) {
			s.requestMarker(requests.DeleteWithHeldMarker)
		} else {
			s.deleteNode(e)
		}
	}
}

// assumeContended goes on after a list that failed: others may wait unnoticed by the holders, so
// it notifies them.
func (s *State) assumeContended() {
	if !s.contention.requested {
		return
	}
	s.listArrived(false)
	for e := range own(s.holders) {
		if e.wantsContention() {
			s.notifyContended(e)
		}
	}
}
