package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// A process must know these facts as soon as the news of them have come.

// direct are the locks that grant a request when they grant its contender, and whose contenders
// wait for nothing but those ahead.
var direct = []string{root + "/m0", root + "/m1", root + "/rw", root + "/custom"}

func (r *programRequest) isDirect() bool { return !r.multi && slices.Contains(direct, r.path) }

// news is how long an answer may be on its way to the request's process, or 0 if that cannot be
// told: a fault has an effect on it, or a multi-lock has contenders that the program does not see.
func (r *programRequest) news() time.Duration {
	if !r.isDirect() || r.w.now() < r.p.foggy || r.p.frozen || r.w.overflow || r.w.sinceMulti(r.p, r.path) < remembered {
		return 0
	}
	return r.p.host.far + 20*time.Millisecond
}

// sinceMulti is how long ago the process had a request of a multi-lock for the path.
func (w *world) sinceMulti(p *process, path string) time.Duration {
	for _, r := range w.open {
		if r.p == p && r.multi && slices.ContainsFunc(r.uses, func(u use) bool { return u.path == path }) {
			return 0
		}
	}
	last, was := w.multis[p.name+path]
	if !was {
		return never
	}
	return w.now() - last
}

// checkNews looks whether a grant is on a node that was gone when the process heard that another
// one was missing that it released: it must prove its nodes anew then.
func (r *programRequest) checkNews(now time.Duration, h *holding) {
	if warned, was := r.p.warned[r.path]; was && h.gone > 0 && h.news > 0 && h.gone+h.news < warned {
		r.w.fail(now, "%v is granted on a node that was gone at %v, though another one was missing at %v", r, h.gone, warned)
	}
}

// checkRelease looks whether the answer to a release says that the node had been deleted. The answer
// cannot say so after a fault was in the way of the release: then an attempt whose answer was lost may
// have deleted the node.
func (r *programRequest) checkRelease(now time.Duration, err error) {
	if !r.isDirect() || !r.sound {
		return
	}
	if errors.Is(err, actors.ErrNodeDeleted) {
		r.p.warned[r.path] = now
	}
	gone, was := r.w.gone[r.grant.Nodes()[0]]
	if err == nil && was && gone < r.since && !r.named && r.p.calm() < r.since && !r.w.overflow {
		r.w.fail(now, "%v: the release is a success, and the node was gone at %v", r, gone)
	}
}

// noteSession notes which sessions the process has lost, and since when it is connected.
func (p *process) noteSession(now time.Duration, id int64, state messages.SessionState) {
	if p.session != 0 && (id != p.session || state == messages.SessionState_LOST) {
		p.former[p.session] = now
	}
	if state == messages.SessionState_CONNECTED {
		p.connected = now
	}
}

// checkFormer looks whether the servers have a session that a process has lost, so that its nodes
// keep locks from others, although the process is connected again.
func (w *world) checkFormer(now time.Duration) {
	alive := map[int64]bool{}
	for _, p := range w.slots {
		if p == nil || len(p.former) == 0 || !p.isUp() || p.frozen || p.state != messages.SessionState_CONNECTED || w.active > 0 {
			continue
		}
		if len(alive) == 0 {
			for _, s := range w.server.Sessions() {
				alive[s.ID] = true
			}
		}
		for id, lost := range p.former {
			since := max(lost, w.faulty, p.connected)
			switch {
			case !alive[id]:
				delete(p.former, id)
			case now > since+w.margin()+closing:
				w.fail(now, "%s has lost session %#x at %v, is connected since %v and has not closed it", p.name, id, lost, since)
			}
		}
	}
}

// closing is how long it may take to close a lost session once the margin is over.
const closing = 3 * time.Second

// margin returns the margin of actors.Config.
func (w *world) margin() time.Duration { return w.plan.session / 5 }

// endGrant notes that the request's grant has ended by itself. The work under a lost session may go on
// for almost the margin, and no other request is granted the lock for so long.
func (r *programRequest) endGrant(now time.Duration) {
	if errors.Is(r.over, actors.ErrHoldExpired) && r.hasUnread() { // its owner goes on to hold
		r.w.ended(now, r.id)
		return
	}
	_, expired := r.w.expired[r.grant.Session()]
	if !errors.Is(r.over, actors.ErrSessionLost) || expired || r.p.dead {
		r.w.lost(now, r.id)
		return
	}
	r.lingers = true
	r.w.lingers(now, r.id)
	if rest := r.w.seen + r.w.margin()*8/10 - now; rest > 0 { // it may have ended since then
		r.w.after(rest, r.endWork)
	} else {
		r.endWork()
	}
}

// endWork is the end of the work under a grant that was lost.
func (r *programRequest) endWork() {
	if r.lingers {
		r.lingers = false
		r.w.ended(r.w.now(), r.id)
	}
}
