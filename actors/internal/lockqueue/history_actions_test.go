package lockqueue

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The actions of a history.

func (w *world) proc() *process { return rapid.SampledFrom(w.procs).Draw(w.t, "process") }

// pick returns one of a process's requests in a certain state.
func (w *world) pick(p *process, state string) requests.ID {
	var ids []requests.ID
	for id, s := range p.open {
		if s == state {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		w.t.Skip("no such request")
	}
	slices.Sort(ids)
	return rapid.SampledFrom(ids).Draw(w.t, "request")
}

func (w *world) guestMarkers() []string {
	if w.rule.OwnMarkersOnly {
		return w.rule.Markers
	}
	return []string{"-lock-", "__lock__", "-__WRIT__", "-__READ__"}
}

// guest returns a guest whose name has the marker.
func (w *world) guest(possible bool, marker string) string {
	var guests []string
	for _, n := range w.sorted() {
		if possible && n.proc == nil && strings.Contains(n.name, marker) {
			guests = append(guests, n.name)
		}
	}
	if len(guests) == 0 {
		w.t.Skip("no such guest")
	}
	return rapid.SampledFrom(guests).Draw(w.t, "guest")
}

// hasProcessExclusive reports whether contenders of one process do not block each other.
func hasProcessExclusive(r queue.Rule) bool {
	return !r.OwnMarkersOnly && len(r.Markers) > int(queue.ProcessExclusive)
}

func (w *world) kinds() (all []queue.Kind) {
	if hasProcessExclusive(w.rule) {
		return []queue.Kind{queue.ProcessExclusive}
	}
	for k := range w.rule.Markers {
		all = append(all, queue.Kind(k))
	}
	return all
}

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) {
			p := w.proc()
			w.ids++
			p.open[w.ids] = "waiting"
			tell := rapid.IntRange(0, 2).Draw(t, "tell") == 0 && !w.rule.CountUnknown
			if tell {
				p.wantsContention[w.ids] = true
			}
			owners := []string{"", "", "a", "b"}
			if w.rule.CountUnknown {
				owners = owners[:1] // its permits may have become too few for a re-entry
			}
			w.step(p, Acquire{
				ID:              w.ids,
				Owner:           rapid.SampledFrom(owners).Draw(t, "owner"),
				Kind:            rapid.SampledFrom(w.kinds()).Draw(t, "kind"),
				NotifyContended: tell,
				Try:             rapid.IntRange(0, 5).Draw(t, "try") == 0,
				Data:            []byte("data"), Revocable: true,
			})
		},
		"cancel": func(*rapid.T) {
			p := w.proc()
			w.step(p, Cancel{ID: w.pick(p, "waiting"), Reason: requests.Cancelled})
		},
		"take back": func(t *rapid.T) {
			p := w.proc()
			w.step(p, Cancel{ID: w.pick(p, "held"), Reason: requests.Cancelled, Unclean: rapid.Bool().Draw(t, "unclean")})
		},
		"release": func(*rapid.T) {
			p := w.proc()
			id := w.pick(p, "held")
			p.open[id] = "released"
			w.step(p, Release{ID: id})
		},
		"serve": func(t *rapid.T) {
			p := w.proc()
			if !p.up || len(p.requests) == 0 {
				t.Skip("nothing in flight")
			}
			w.serve(p, rapid.IntRange(0, len(p.requests)-1).Draw(t, "request"), rapid.Bool().Draw(t, "batch"))
		},
		"read behind": func(t *rapid.T) {
			p := w.proc()
			if len(p.behind) == 0 {
				t.Skip("nothing in flight")
			}
			w.readBehind(p)
		},
		"search": func(t *rapid.T) {
			p := w.proc()
			if len(p.lost) == 0 {
				t.Skip("nothing is lost")
			}
			w.search(p)
		},
		"a former session's create": func(t *rapid.T) {
			if len(w.late) == 0 {
				t.Skip("none is late")
			}
			f := w.late[0]
			w.late = w.late[1:]
			w.makeDirectory()
			w.zxid++
			_, kind, _ := w.rule.Parse(f.Node + "0000000000")
			if hasProcessExclusive(w.rule) {
				kind = queue.ProcessExclusive
			}
			w.add(f.Node, kind, f.proc).epoch = f.epoch
		},
		"answer": func(t *rapid.T) {
			p := w.proc()
			if len(p.answers) == 0 {
				t.Skip("no answer")
			}
			w.deliver(p, rapid.IntRange(0, len(p.answers)-1).Draw(t, "answer"))
		},
		"follower": func(t *rapid.T) {
			p := w.proc()
			if p.view.passed == len(w.changes) {
				t.Skip("it shows all")
			}
			w.advance(p, rapid.IntRange(p.view.passed+1, len(w.changes)).Draw(t, "changes"))
		},
		"event": func(t *rapid.T) {
			p := w.proc()
			if len(p.events) == 0 {
				t.Skip("no event")
			}
			w.hear(p)
		},
		"the empty directory is collected": func(t *rapid.T) {
			if len(w.nodes) > 0 {
				t.Skip("not empty")
			}
			w.setDirectory(0)
		},
		"guest comes": func(t *rapid.T) {
			w.makeDirectory()
			w.zxid++
			w.guests++
			marker := rapid.SampledFrom(w.guestMarkers()).Draw(t, "marker")
			_, kind, _ := w.rule.Parse(marker + "0000000000")
			w.add(fmt.Sprintf("guest%d%s", w.guests, marker), kind, nil)
		},
		"guest downgrades": func(t *rapid.T) {
			// (Where numbers are used up, Curator's downgrade loses its place.)
			writer := w.guest(!w.rule.OwnMarkersOnly && downgradesFrom(w.rule, queue.Exclusive) != 0 && !queue.NearEnd(w.nextSeq), "__WRIT__")
			name := strings.Replace(writer, "-__WRIT__", "x-__READ__", 1)
			w.zxid++
			w.put(&worldNode{name: name, seq: w.nodes[writer].seq, born: w.nodes[writer].born, kind: queue.Shared, czxid: w.zxid})
			if rapid.Bool().Draw(t, "goes at once") {
				w.del(writer)
			}
		},
		"plain guest comes": func(t *rapid.T) {
			w.makeDirectory()
			w.zxid++
			w.add("plain", queue.Exclusive, nil)
		},
		"resize": func(t *rapid.T) {
			if !w.rule.CountUnknown {
				t.Skip("not that kind of lock")
			}
			p := w.proc()
			p.permits = rapid.IntRange(0, 4).Draw(t, "permits")
			w.step(p, Resize{p.permits})
		},
		"another client deletes nodes": func(t *rapid.T) {
			nodes := w.sorted()
			if !w.meddling || len(nodes) == 0 {
				t.Skip("not here")
			}
			w.meddle(rapid.SampledFrom(nodes).Draw(t, "node"))
		},
		"another client deletes the directory": func(t *rapid.T) {
			if !w.meddling || rapid.IntRange(0, 2).Draw(t, "really") != 0 {
				t.Skip("not here")
			}
			for _, n := range w.sorted() {
				w.meddle(n)
			}
			w.setDirectory(0)
		},
		"guest goes": func(t *rapid.T) {
			w.del(w.guest(true, ""))
		},
		"disturb the connection": func(*rapid.T) {
			p := w.proc()
			w.step(p, Session{Epoch: p.epoch, State: Suspended})
			// Events are lost with the connection, and watches with them.
			p.events, p.watches, p.directoryWatched = nil, map[string]bool{}, false
			p.heard = p.emitted
			w.step(p, Session{Epoch: p.epoch, State: Connected})
		},
		"lose the session": func(t *rapid.T) {
			if rapid.IntRange(0, 2).Draw(t, "really") != 0 {
				t.Skip("not now")
			}
			w.loseSession(w.proc())
		},
		"expire": func(*rapid.T) {
			w.late = nil
			for _, n := range w.sorted() {
				if n.proc != nil && n.epoch < n.proc.epoch {
					w.del(n.name)
				}
			}
		},
		"revoke": func(t *rapid.T) {
			nodes := w.sorted()
			if len(nodes) == 0 {
				t.Skip("no node")
			}
			w.write(rapid.SampledFrom(nodes).Draw(t, "node").name, true)
		},
		"tick": func(*rapid.T) {
			p := w.proc()
			p.state.ReleaseMemory()
			w.tick(p)
		},
		"drain": func(*rapid.T) { w.drain() },
		"":      func(*rapid.T) {},
	}
}

// loseSession begins another session. The nodes of the old one are still there.
func (w *world) loseSession(p *process) {
	w.step(p, Session{Epoch: p.epoch, State: Lost})
	w.connect(p)
}

// finish has all owners leave: every request must end, and no node and no State's memory of one may
// be left.
func (w *world) finish() {
	for range 1000 {
		w.actions()["expire"](w.t)
		for _, p := range w.procs {
			if p.permits == 0 {
				p.permits = 1
				w.step(p, Resize{1})
			}
		}
		for _, n := range w.sorted() {
			if n.proc == nil {
				w.del(n.name)
			}
		}
		w.drain()
		open := 0
		for _, p := range w.procs {
			for id, s := range p.open {
				open++
				if s == "held" {
					p.open[id] = "released"
					w.step(p, Release{ID: id})
				}
			}
		}
		if open == 0 {
			break
		}
	}
	w.drain()
	if len(w.nodes) > 0 {
		w.t.Fatalf("nodes are left: %s", w)
	}
	for _, p := range w.procs {
		for id, s := range p.open {
			w.t.Fatalf("process %d: request %d is still %s", p.n, id, s)
		}
		if s := p.state; len(s.contenders) > s.foreign || len(s.waitingInOrder())+len(s.unsent)-s.unsentLeft+len(s.entries) > 0 || s.waitingTries != 0 {
			w.t.Fatalf("process %d remembers %d listed, %d foreign, %d waiting, %d unsent, %d ours, %d tries", p.n, len(s.contenders), s.foreign, len(s.waitingInOrder()), len(s.unsent), len(s.entries), s.waitingTries)
		}
	}
}
