package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/queue"
)

// A holder may want to know whether other contenders wait for the lock.

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
		s.deleteNode(e)
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
