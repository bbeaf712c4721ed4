package lockqueue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

func (m *model) drawProcess() *process { return rapid.SampledFrom(m.processes).Draw(m.t, "process") }

func (m *model) drawRequest(p *process, state string) requests.ID {
	return machinetest.Draw(m.t, p.open.In(state), "request "+state)
}

// drawOther draws a node of another library's client whose name has the marker.
func (m *model) drawOther(marker string) *serverNode {
	others := slices.DeleteFunc(m.inOrder(), func(n *serverNode) bool { return n.process != nil || !strings.Contains(n.name, marker) })
	return machinetest.Draw(m.t, others, "node of another client")
}

// otherMarkers are the markers of other libraries' contenders.
func (m *model) otherMarkers() []string {
	if m.rule.OwnMarkersOnly {
		return m.rule.Markers
	}
	return []string{"-lock-", "__lock__", "-__WRIT__", "-__READ__"}
}

// hasProcessExclusive reports whether contenders of one process do not block each other.
func hasProcessExclusive(r queue.Rule) bool {
	return !r.OwnMarkersOnly && len(r.Markers) > int(queue.ProcessExclusive)
}

func (m *model) kinds() (all []queue.Kind) {
	if hasProcessExclusive(m.rule) {
		return []queue.Kind{queue.ProcessExclusive}
	}
	for k := range m.rule.Markers {
		all = append(all, queue.Kind(k))
	}
	return all
}

// run runs many requests, deliveries and, less often, any other actions.
func (m *model) run() {
	actions := m.actions()
	m.t.Repeat(map[string]func(*rapid.T){
		"owners ask": machinetest.Several(4, actions, "acquire", "acquire", "acquire", "release", "release", "cancel"),
		"server answers": machinetest.Several(20, actions, "serve", "serve", "answer arrives", "answer arrives", "read behind a create",
			"read behind a create", "event arrives", "search or repeat a create", "follower catches up"),
		"with any action": machinetest.Several(3, actions, slices.Sorted(maps.Keys(actions))...),
	})
}

// actions are all actions of a history.
func (m *model) actions() map[string]func(*rapid.T) {
	actions := m.actionsBelow()
	maps.Copy(actions, map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) { m.acquire(t, m.drawProcess()) },
		"cancel": func(*rapid.T) {
			p := m.drawProcess()
			m.step(p, Cancel{ID: m.drawRequest(p, "waiting"), Reason: requests.Cancelled})
		},
		"withdraw a grant": func(t *rapid.T) {
			p := m.drawProcess()
			m.step(p, Cancel{ID: m.drawRequest(p, "held"), Reason: requests.Cancelled, Unclean: rapid.Bool().Draw(t, "unclean")})
		},
		"release": func(*rapid.T) {
			p := m.drawProcess()
			m.release(p, m.drawRequest(p, "held"))
		},
		"resize": func(t *rapid.T) {
			if !m.rule.CountUnknown {
				t.Skip("the permits are fixed")
			}
			p := m.drawProcess()
			p.permits = rapid.IntRange(0, 4).Draw(t, "permits")
			m.step(p, Resize{p.permits})
		},
		"a delayed create is executed": func(t *rapid.T) {
			if len(m.delayedCreates) == 0 {
				t.Skip("no create is delayed")
			}
			create := m.delayedCreates[0]
			m.delayedCreates = m.delayedCreates[1:]
			m.ensureDirectory()
			m.zxid++
			m.createNode(create.Node, create.process).epoch = create.epoch
		},
		"foreign contender downgrades": func(t *rapid.T) {
			if m.rule.OwnMarkersOnly || downgradesFrom(&m.rule, queue.Exclusive) == 0 {
				t.Skip("there is no downgrade")
			}
			writer := m.drawOther("__WRIT__")
			m.zxid++
			m.insert(&serverNode{name: strings.Replace(writer.name, "-__WRIT__", "x-__READ__", 1), place: writer.place, kind: queue.Shared, czxid: m.zxid})
			if rapid.Bool().Draw(t, "the writer leaves") {
				m.deleteNode(writer.name)
			}
		},
		"revoke": func(t *rapid.T) { m.writeData(machinetest.Draw(t, m.inOrder(), "node").name, true) },
		"another client deletes the directory": func(t *rapid.T) {
			if !m.othersDelete || rapid.IntRange(0, 2).Draw(t, "really") != 0 {
				t.Skip("not now")
			}
			for _, n := range m.inOrder() {
				m.deleteByOther(n)
			}
			m.setDirectory(0)
		},
		"lose the session": func(t *rapid.T) {
			if rapid.IntRange(0, 2).Draw(t, "really") != 0 {
				t.Skip("not now")
			}
			p := m.drawProcess()
			m.loseSession(p)
			sent := len(p.inFlight)
			m.actAsOwners(p)
			if len(p.inFlight) > sent {
				t.Fatalf("process %d has no session and sends %v: %s", p.n, p.inFlight[sent:], m)
			}
			m.connect(p)
		},
		"expire lost sessions": func(*rapid.T) { m.expireSessions() },
		"drain":                func(*rapid.T) { m.drain() },
		"":                     func(*rapid.T) {},
	})
	return actions
}

// actionsBelow are those actions that also happen below semaphores and local queues.
func (m *model) actionsBelow() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"serve": func(t *rapid.T) {
			p := m.drawProcess()
			if len(p.inFlight) == 0 {
				t.Skip("nothing in flight")
			}
			m.serve(p, rapid.IntRange(0, len(p.inFlight)-1).Draw(t, "effect"), rapid.Bool().Draw(t, "batch"))
		},
		"read behind a create": func(t *rapid.T) {
			p := m.drawProcess()
			if len(p.reads) == 0 {
				t.Skip("no read")
			}
			m.serveRead(p)
		},
		"search or repeat a create": func(t *rapid.T) {
			p := m.drawProcess()
			if len(p.unanswered) == 0 {
				t.Skip("no answer was lost")
			}
			m.findOrRepeatCreate(p)
		},
		"follower catches up": func(t *rapid.T) {
			p := m.drawProcess()
			if p.follower.applied == len(m.changes) {
				t.Skip("it does not lag behind")
			}
			m.advance(p, rapid.IntRange(p.follower.applied+1, len(m.changes)).Draw(t, "changes"))
		},
		"answer arrives": func(t *rapid.T) {
			p := m.drawProcess()
			if len(p.answers) == 0 {
				t.Skip("no answer")
			}
			m.deliverAnswer(p, rapid.IntRange(0, len(p.answers)-1).Draw(t, "answer"))
		},
		"event arrives": func(t *rapid.T) {
			p := m.drawProcess()
			if len(p.events) == 0 {
				t.Skip("no event")
			}
			m.deliverEvent(p)
		},
		"tick": func(*rapid.T) {
			p := m.drawProcess()
			p.state.ReleaseMemory()
			m.tick(p)
		},
		"disconnect": func(*rapid.T) {
			p := m.drawProcess()
			m.step(p, Session{Epoch: p.epoch, State: Suspended})
			// Events and watches are lost with it.
			p.events, p.watches, p.directoryWatched = nil, map[string]bool{}, false
			p.selfWatched, p.knownDirectory = false, 0
			p.delivered = p.emitted
			m.actAsOwners(p)
			m.step(p, Session{Epoch: p.epoch, State: Connected})
		},
		"the empty directory is deleted": func(t *rapid.T) {
			if len(m.nodes) > 0 {
				t.Skip("it is not empty")
			}
			m.setDirectory(0)
		},
		"another client writes to the directory": func(*rapid.T) {
			if m.directory != 0 {
				m.setDirectory(m.directory)
			}
		},
		"foreign contender comes": func(t *rapid.T) {
			m.ensureDirectory()
			m.zxid++
			m.others++
			m.createNode(fmt.Sprintf("other%d%s", m.others, rapid.SampledFrom(m.otherMarkers()).Draw(t, "marker")), nil)
		},
		"node without a number comes": func(*rapid.T) {
			m.ensureDirectory()
			m.zxid++
			m.createNode(unnumbered, nil)
		},
		"foreign contender goes": func(*rapid.T) { m.deleteNode(m.drawOther("").name) },
		"another client deletes a node": func(t *rapid.T) {
			if !m.othersDelete {
				t.Skip("not in this history")
			}
			m.deleteByOther(machinetest.Draw(t, m.inOrder(), "node"))
		},
	}
}

func (m *model) acquire(t *rapid.T, p *process) {
	m.ids++
	p.open[m.ids] = "waiting"
	notify := rapid.IntRange(0, 2).Draw(t, "notify") == 0 && !m.rule.CountUnknown
	if notify {
		p.wantsContention[m.ids] = true
	}
	owners := []string{"", "", "a", "b"}
	if m.rule.CountUnknown {
		owners = owners[:1] // its permits may have become too few for a re-entry
	}
	m.step(p, Acquire{
		ID:              m.ids,
		Owner:           rapid.SampledFrom(owners).Draw(t, "owner"),
		Kind:            rapid.SampledFrom(m.kinds()).Draw(t, "kind"),
		NotifyContended: notify,
		Try:             rapid.IntRange(0, 5).Draw(t, "try") == 0,
		Data:            []byte("data"), Revocable: true,
	})
}

func (m *model) release(p *process, id requests.ID) {
	p.open[id] = "released"
	m.step(p, Release{ID: id})
}

// actAsOwners has owners of the process acquire, cancel and release, as they also do while it has
// no connection.
func (m *model) actAsOwners(p *process) {
	if p.onEffects != nil {
		return // a machine above owns the requests
	}
	for range rapid.IntRange(0, 3).Draw(m.t, "actions of owners") {
		action := rapid.SampledFrom([]string{"acquire", "cancel", "release"}).Draw(m.t, "action")
		waiting, held := p.open.In("waiting"), p.open.In("held")
		switch {
		case action == "cancel" && len(waiting) > 0:
			m.step(p, Cancel{ID: machinetest.Draw(m.t, waiting, "waiting"), Reason: requests.Cancelled})
		case action == "release" && len(held) > 0:
			m.release(p, machinetest.Draw(m.t, held, "held"))
		default:
			m.acquire(m.t, p)
		}
	}
}

// loseSession ends the session. Its nodes stay until it expires.
func (m *model) loseSession(p *process) { m.step(p, Session{Epoch: p.epoch, State: Lost}) }

// expireSessions deletes the nodes of lost sessions, whose delayed creates fail from then on.
func (m *model) expireSessions() {
	m.delayedCreates = nil
	for _, n := range m.inOrder() {
		if n.process != nil && n.epoch < n.process.epoch {
			m.deleteNode(n.name)
		}
	}
}

// noticeDeletions lets all processes notice which nodes were deleted. Afterwards no contender may
// wait that could hold.
func (m *model) noticeDeletions() {
	m.expireSessions()
	for range 6 {
		m.drain()
		for _, p := range m.processes {
			p.ticks++
			m.step(p, Tick{})
		}
	}
	m.deletionsNoticed = true
	m.drain()
	m.deletionsNoticed = false
}

// tickOutside gives a Tick to the processes with requests that wait outside.
func (m *model) tickOutside() {
	for _, p := range m.processes {
		if p.state.anyOutside() {
			m.tick(p)
		}
	}
}

// anyOutside reports whether requests of any process wait outside.
func (m *model) anyOutside() bool {
	return slices.ContainsFunc(m.processes, func(p *process) bool { return p.state.anyOutside() })
}

// finish has all owners release. Each request must end, and neither a node nor a State's memory of
// one may be left.
func (m *model) finish() {
	for range 1000 {
		m.expireSessions()
		for _, p := range m.processes {
			if p.permits == 0 {
				p.permits = 1
				m.step(p, Resize{1})
			}
		}
		for _, n := range m.inOrder() {
			if n.process == nil {
				m.deleteNode(n.name)
			}
		}
		m.tickOutside()
		m.drain()
		open := 0
		for _, p := range m.processes {
			open += len(p.open)
			for _, id := range p.open.In("held") {
				m.release(p, id)
			}
		}
		if open == 0 {
			break
		}
	}
	m.drain()
	if len(m.nodes) > 0 {
		m.t.Fatalf("nodes are left: %s", m)
	}
	for _, p := range m.processes {
		if len(p.open) > 0 {
			m.t.Fatalf("process %d: requests are open: %v", p.n, p.open)
		}
		if len(p.state.watches) > 0 {
			m.t.Fatalf("process %d remembers watches: %v", p.n, p.state.watches)
		}
		if s := p.state; len(s.contenders) > s.foreign || len(s.waitingInOrder())+len(s.entries.list) > 0 || s.unsent.First() != nil || s.waitingTries != 0 {
			m.t.Fatalf("process %d remembers %d listed, %d foreign, %d waiting, %d entries, %d tries; unsent %p", p.n, len(s.contenders), s.foreign, len(s.waitingInOrder()), len(s.entries.list), s.waitingTries, s.unsent.First())
		}
	}
}
