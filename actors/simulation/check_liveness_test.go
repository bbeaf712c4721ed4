package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// patience is how long a lock without a holder may have a waiter while nothing goes wrong: lock-delays
// and local queues take their time.
const patience = 8 * time.Second

// drainTime is how long it may take after the last fault until all requests have ended.
const drainTime = 5 * time.Minute

// isCalm reports whether no fault has an effect any more, be it by a session that has yet to
// expire.
func (w *world) isCalm(now time.Duration) bool {
	if w.active > 0 || w.operator.open.Load() > 0 || w.faulty > 0 && now < w.faulty+2*w.plan.session+10*time.Second {
		return false
	}
	for _, p := range w.slots {
		if p == nil || !p.isUp() || p.isShaky() {
			return false
		}
	}
	return now > 2*w.plan.session
}

// pending says what is open.
func (w *world) pending() string {
	var all []string
	for _, r := range w.open {
		all = append(all, r.String())
	}
	for _, o := range w.owners {
		all = append(all, o.String())
	}
	if w.questions > 0 {
		all = append(all, fmt.Sprint(w.questions, " questions"))
	}
	if w.operator.open.Load() > 0 || !w.foreignersAreDone() || !w.candidatesAreDone() {
		all = append(all, "operator, another library or a candidate")
	}
	return strings.Join(all, "; ")
}

// checkSleepers finds requests that wait for a lock without a holder, where no multi-lock ties a held
// lock to it. It looks once a second.
func (w *world) checkSleepers(now time.Duration) {
	if now < w.looked+time.Second {
		return
	}
	w.looked = now
	calm := w.isCalm(now)
	if !calm {
		w.calmSince = 0
	} else if w.calmSince == 0 {
		w.calmSince = now
	}
	w.checkFormer(now)
	w.checkCounts()
	w.checkElection(now, calm)
	for _, r := range w.open {
		if !calm || r.state != waiting || w.isBusy(r.uses) {
			r.free = 0
			continue
		}
		if r.free == 0 {
			r.free = now
		}
		if now > r.free+patience {
			w.fail(now, "%v: no request has held it since %v", r, r.free)
		}
	}
}

// isBusy reports whether a process holds or releases one of the locks of the uses, or one that open
// requests tie to them. Clients of other libraries may queue unseen.
func (w *world) isBusy(uses []use) bool {
	paths := map[string]bool{}
	for _, u := range uses {
		paths[u.path] = true
	}
	touches := func(uses []use) bool {
		return slices.ContainsFunc(uses, func(u use) bool { return paths[u.path] })
	}
	for grown := true; grown; {
		grown = false
		for _, r := range w.open {
			if !touches(r.uses) {
				continue
			}
			if r.state != waiting || r.absent && isDone(r.future.Done()) {
				return true
			}
			for _, u := range r.uses {
				grown = grown || !paths[u.path]
				paths[u.path] = true
			}
		}
	}
	if len(w.foreign) > 0 && (paths[root+"/m0"] || paths[root+"/rw"]) {
		return true
	}
	return slices.ContainsFunc(w.owners, func(o *owner) bool { return touches(o.uses) && o.state != waiting }) ||
		slices.ContainsFunc(w.held, func(h *holding) bool { return touches(h.uses) })
}

// register is what a lock protects: a number that checks tokens.
type register struct {
	newest actors.Token
	value  int
}

// useRegisters has the holder read what its exclusive locks protect, and write it after a time,
// perhaps when it does not hold any more. A write is made of what was read by the same token,
// or refused.
func (r *programRequest) useRegisters() {
	if r.named {
		return // re-entries have one token
	}
	token := r.grant.Token()
	for _, u := range r.uses {
		s := r.w.specs[u.path]
		if s.excludes != nil || s.most > 0 || u.weight < s.room {
			continue
		}
		reg := r.w.registers[u.path]
		if reg == nil {
			reg = &register{}
			r.w.registers[u.path] = reg
		}
		if token.Compare(reg.newest) < 0 {
			continue
		}
		reg.newest = token
		read := reg.value
		delay := time.Duration(r.rand.ExpFloat64() * float64(100*time.Millisecond))
		if r.rand.IntN(10) == 0 {
			delay *= 50
		}
		r.w.after(delay, func() {
			switch {
			case token.Compare(reg.newest) < 0: // refused
			case reg.value != read:
				r.w.fail(r.w.now(), "%s: the write of %d by token %v loses another one", u.path, r.id, token)
			default:
				reg.value++
			}
		})
	}
}
