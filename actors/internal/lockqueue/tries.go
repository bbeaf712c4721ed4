package lockqueue

import (
	"slices"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// A try is refused rather than wait for other contenders.

// blockedLocally reports whether contenders of this process alone block a new request. Contenders
// of other processes may be gone unnoticed: ZooKeeper knows.
func (s *State) blockedLocally(kind queue.Kind) bool {
	set, n := s.rule.BlockedBy[kind], 0
	for kind := range queue.Kind(len(s.rule.BlockedBy)) {
		list := s.ofKind(kind)
		for i := len(list) - 1; i >= 0 && n < s.rule.Permits && set.Has(kind); i-- {
			if list[i].entry != nil {
				n++
			}
		}
	}
	for _, early := range [][]*entry{s.unanswered, s.unsent} {
		for i := 0; i < len(early) && n < s.rule.Permits; i++ {
			e := early[i]
			if !e.listed && (e.stage == creating || e.stage == unsent) && set.Has(e.kind) {
				n++
			}
		}
	}
	return n >= s.rule.Permits
}

// refuseTries refuses the tries of e, and of each contender that must wait at least as long as e.
// It reports whether there were any. lastSeen is the clock at which the contenders ahead were last
// known to exist. A try that came later stays: the lock may have become free in between.
func (s *State) refuseTries(e *entry, lastSeen uint64) (any bool) {
	for k := range s.waiting {
		if !keepsWaiting(s.rule, e.kind, queue.Kind(k)) {
			continue
		}
		for _, c := range slices.Clone(s.waiting[k][place(s.waiting[k], e.seq):]) {
			if w := c.entry; w.sentAt <= lastSeen && s.refuseTriesOf(w) {
				any = true
				if len(w.requests) == 0 {
					s.leave(w) // takes w out of waiting
				}
			}
		}
	}
	return any
}

// refuseTriesOf refuses the tries of an entry, and reports whether there were any.
func (s *State) refuseTriesOf(e *entry) (any bool) {
	for i := len(e.requests) - 1; i >= 0; i-- {
		if r := e.requests[i]; r.try {
			s.drop(e, r.id)
			s.refuse(r.id, requests.NotAcquired)
			any = true
		}
	}
	return any
}

func (e *entry) hasTry() bool {
	return slices.ContainsFunc(e.requests, func(r request) bool { return r.try })
}
