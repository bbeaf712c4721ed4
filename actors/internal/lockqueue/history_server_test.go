package lockqueue

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// unnumbered is the prefix of children whose names have no sequence number.
const unnumbered = "unnumbered"

// createNode creates a sequential node of a process, or of another library's client if p is nil.
func (m *model) createNode(prefix string, p *process) *serverNode {
	m.lastPlace++
	n := &serverNode{name: fmt.Sprintf("%s%010d", prefix, m.nextSeq), place: m.lastPlace, czxid: m.zxid, process: p}
	_, n.kind, _ = m.rule.Parse(n.name)
	if p != nil {
		n.epoch = p.epoch
		if hasProcessExclusive(m.rule) {
			n.kind = queue.ProcessExclusive
		}
	}
	if n.unnumbered = prefix == unnumbered; n.unnumbered {
		n.name = fmt.Sprintf("%s%d", prefix, m.zxid)
	}
	m.highest = max(m.highest, queue.Rank(m.nextSeq))
	// Each child takes a sequence number, also if its name does not show it. After the last one it
	// stays since ZooKeeper 3.6, and is negative before.
	if m.nextSeq++; m.nextSeq > math.MaxInt32 {
		m.nextSeq = m.afterLast
	}
	m.insert(n)
	return n
}

// deleteByOther has another client delete a node.
func (m *model) deleteByOther(n *serverNode) {
	if n.process != nil && n.epoch == n.process.epoch {
		d := deletedNode{process: n.process, ticks: n.process.ticks, watched: n.process.watches[n.name], order: len(m.deleted)}
		for _, other := range m.inOrder() {
			foreign := other.process != n.process || other.epoch != n.epoch
			if m.rule.Permits == 1 && foreign && !other.unnumbered && other.place < n.place && m.rule.BlockedBy[n.kind].Has(m.kindSeenBy(other, n)) {
				d.blocked = true
			}
		}
		m.deleted[n.name] = d
	}
	m.deleteNode(n.name)
}

// ensureDirectory creates the directory if it is missing. Its sequence numbers begin at 0.
func (m *model) ensureDirectory() {
	if m.directory == 0 {
		m.zxid++
		m.nextSeq = 0
		m.setDirectory(m.zxid)
	}
}

// serve executes an effect in flight. With batch, all creates in flight are executed with it if it
// is one, and deletions of nodes, in one transaction.
func (m *model) serve(p *process, i int, batch bool) {
	m.serveReads(p) // they were sent with their transactions
	f := p.inFlight[i]
	p.inFlight = slices.Delete(p.inFlight, i, i+1)
	switch f.Kind {
	case requests.CreateNode:
		if f.Guard != "" {
			m.createGuarded(p, f)
			return
		}
		creates, deleted := []Effect{f}, map[string]bool{}
		for i := 0; batch && i < len(p.inFlight); {
			switch other := p.inFlight[i]; {
			case other.Kind == requests.CreateNode && other.Guard == "":
				creates = append(creates, other)
			case other.Kind == requests.DeleteNode && m.nodes[other.Node] != nil:
				m.deleteNode(other.Node)
				deleted[other.Node] = true
				m.catchUp(p)
				p.reply(Deleted{Serial: other.Serial})
			default:
				i++
				continue
			}
			p.inFlight = slices.Delete(p.inFlight, i, i+1)
		}
		m.create(p, creates, deleted)
	case requests.ListDirectory:
		p.directoryWatched = p.directoryWatched || f.Watch && p.follower.directory != 0
		p.reply(Listed{Serial: f.Serial, Children: m.children(p), DirectoryCzxid: p.follower.directory})
	case requests.WatchNodes:
		var gone []string
		for _, name := range f.Nodes {
			exists := p.follower.nodes[name] != nil
			switch {
			case f.Since != 0 && (!exists || p.follower.changedAt(name) > f.Since):
				p.emitWake(name, !exists)
			case exists:
				p.watches[name] = true
			default:
				gone = append(gone, name)
			}
		}
		p.reply(Watched{Serial: f.Serial, Gone: gone, Data: p.revokeData(f)})
	case requests.RestoreData:
		m.writeData(f.Node, false)
		m.catchUp(p)
	case requests.CreateHeldMarker, requests.ReplaceHeldMarker, requests.DeleteWithHeldMarker:
		m.serveHeldMarker(p, f)
	case requests.ReadHeldMarker:
		data := map[string][]byte{}
		if p.follower.heldMarker != "" {
			data["the held marker"] = []byte(p.follower.heldMarker)
		}
		p.reply(Watched{Serial: f.Serial, Data: data})
	case requests.DeleteNode:
		missing := m.nodes[f.Node] == nil
		m.deleteNode(f.Node)
		m.catchUp(p)
		p.reply(Deleted{Serial: f.Serial, Missing: missing})
	case requests.DeleteDirectory:
		done := m.directory != 0 && len(m.nodes) == 0 && !m.unrelated && !m.undeletable
		if done {
			m.setDirectory(0)
		}
		m.catchUp(p)
		if m.undeletable || !m.answersDeletions && rapid.IntRange(0, 7).Draw(m.t, "outcome of the deletion is unknown") == 0 {
			p.reply(Failed{Serial: f.Serial, Reason: requests.OutcomeUnknown})
		} else {
			p.reply(Transacted{Serial: f.Serial, Done: done})
		}
	}
}

// directoryRead is the read of the directory behind a transaction that was executed, if there is one.
// The bridge answers the creates with what it reads.
type directoryRead struct {
	created   []Created
	listAfter map[uint64]bool // of each create, by serial
	byWatch   map[uint64]bool // of each create, by serial: a watch says which directory it is
	setsWatch bool            // one of these is the first, so that the read sets the watch
}

// unansweredCreate is a create whose answer was lost.
type unansweredCreate struct {
	Effect
	step uint32
}

// create executes a transaction of creates, which has also deleted nodes.
func (m *model) create(p *process, creates []Effect, deleted map[string]bool) {
	missing := m.directory == 0
	m.ensureDirectory()
	m.zxid++
	read := directoryRead{listAfter: map[uint64]bool{}, byWatch: map[uint64]bool{}}
	answerLost := rapid.IntRange(0, 7).Draw(m.t, "answer is lost") == 0
	elsewhere := rapid.IntRange(0, 2).Draw(m.t, "creates in other directories ahead")
	ofOneRequest := m.atomicCreates && rapid.Bool().Draw(m.t, "leases of one request")
	if ofOneRequest { // they are executed in the order of the effects
		slices.SortFunc(creates, func(a, b Effect) int { return cmp.Compare(a.Serial, b.Serial) })
	}
	for i, f := range creates {
		step := uint32(elsewhere + i)
		if ofOneRequest {
			step = uint32(elsewhere + len(creates) - 1)
		}
		n := m.createNode(f.Node, p)
		p.createdIn[f.Serial] = p.ticks
		created := n.created(f.Serial, step)
		created.SameDirectory = deleted[f.After]
		read.created = append(read.created, created)
		read.listAfter[f.Serial] = f.ListAfter
		if missing && len(creates) == 1 { // the transaction makes the directory, too
			read.created[0].DirectoryCzxid, read.created[0].Children = m.directory, []string{n.name}
		} else if f.DirectorySeen && !f.ListAfter {
			read.byWatch[f.Serial] = true
			read.setsWatch = read.setsWatch || p.knownDirectory == 0
		}
		if answerLost {
			p.unanswered = append(p.unanswered, unansweredCreate{f, step})
		}
	}
	m.catchUp(p)
	if !answerLost {
		p.reads = append(p.reads, read)
	}
}

func (n *serverNode) created(serial uint64, step uint32) Created {
	return Created{Serial: serial, Node: n.name, Token: machinetest.TokenAt(n.czxid, step)}
}

// findOrRepeatCreate looks for the node of a create whose answer was lost, and repeats the create
// if there is none, as the bridge does.
func (m *model) findOrRepeatCreate(p *process) {
	m.serveReads(p)
	f := p.unanswered[0]
	p.unanswered = p.unanswered[1:]
	m.catchUp(p) // the bridge looks behind a barrier
	for _, n := range m.nodes {
		if strings.HasPrefix(n.name, f.Node) && n.process == p && n.epoch == p.epoch {
			created := n.created(f.Serial, f.step)
			created.DirectoryCzxid = p.follower.directory
			if f.ListAfter || rapid.Bool().Draw(m.t, "names come with the node") {
				created.Children = m.children(p)
			}
			p.reply(created)
			return
		}
	}
	m.create(p, []Effect{f.Effect}, nil)
}

// serveRead executes the first read behind a transaction. It may come later than transactions of
// others, and may fail.
func (m *model) serveRead(p *process) {
	read := p.reads[0]
	p.reads = p.reads[1:]
	fails := rapid.IntRange(0, 9).Draw(m.t, "read behind a create fails") == 0
	for _, e := range read.created {
		_, deleted := m.deleted[e.Node]
		if !fails && deleted && !slices.Contains(m.children(p), e.Node) && rapid.Bool().Draw(m.t, "the bridge looks for the node") {
			p.reply(Failed{Serial: e.Serial, Reason: requests.NodeDeleted})
			p.answers[len(p.answers)-1].gone = e.Node
			continue
		}
		switch {
		case e.SameDirectory || e.DirectoryCzxid != 0:
		case read.byWatch[e.Serial]:
			if read.setsWatch && !fails && p.knownDirectory == 0 {
				p.knownDirectory, p.selfWatched = p.follower.directory, p.follower.directory != 0
			}
			e.DirectoryCzxid = p.knownDirectory
		case !fails:
			e.DirectoryCzxid = p.follower.directory
			if read.listAfter[e.Serial] {
				e.Children = m.children(p)
			}
		}
		p.reply(e)
	}
}

func (m *model) serveReads(p *process) {
	for len(p.reads) > 0 {
		m.serveRead(p)
	}
}

// createGuarded executes a downgrade: it creates a node at the place of another one, if that exists.
func (m *model) createGuarded(p *process, f Effect) {
	m.catchUp(p)
	writer := m.nodes[f.Guard]
	if writer == nil {
		p.reply(Failed{Serial: f.Serial, Reason: requests.NotHeld})
		return
	}
	m.zxid++
	_, kind, _ := m.rule.Parse(f.Node)
	n := &serverNode{name: f.Node, place: writer.place, kind: kind, czxid: m.zxid, process: p, epoch: p.epoch}
	m.insert(n)
	m.catchUp(p)
	created := n.created(f.Serial, 0)
	created.DirectoryCzxid, created.Children = m.directory, m.children(p)
	p.reply(created)
	p.createdIn[f.Serial] = p.ticks
	p.answers[len(p.answers)-1].due = p.ticks + 1 // the State grants by it however late it comes
}

// reply sends an answer, which comes after the events so far.
func (p *process) reply(e Event) { p.answers = append(p.answers, answer{event: e, after: p.emitted}) }

func (m *model) deliverEvent(p *process) {
	e := p.events[0]
	p.events = p.events[1:]
	p.delivered++
	if e.Deleted && p.state.find(e.Node) != nil {
		m.noteDeletion(p, e.Node)
	}
	m.step(p, e)
}

// noteDeletion notes that a process knows that a node is deleted, perhaps one of its own.
func (m *model) noteDeletion(p *process, node string) {
	last := m.deleted[node]
	if last.process != p {
		return
	}
	for name, d := range m.deleted {
		d.laterKnown = d.laterKnown || d.process == p && d.order < last.order
		m.deleted[name] = d
	}
}

// tick gives a process a Tick. The bridge gives up a follower or a connection that is later than
// this: a change is shown before the second tick after it, and the events of what is shown come
// before the second tick after that.
func (m *model) tick(p *process) {
	m.advance(p, p.follower.changesAtTick)
	p.follower.changesAtTick = len(m.changes)
	for p.delivered < p.emittedAtTick {
		m.deliverEvent(p)
	}
	for i := len(p.answers) - 1; i >= 0; i-- {
		if i < len(p.answers) && p.answers[i].due != 0 && p.answers[i].due <= p.ticks {
			m.deliverAnswer(p, i)
		}
	}
	p.emittedAtTick = p.emitted
	p.ticks++
	m.step(p, Tick{})
}

func (m *model) deliverAnswer(p *process, i int) {
	a := p.answers[i]
	p.answers = slices.Delete(p.answers, i, i+1)
	if c, ok := a.event.(Created); ok {
		c.Recent = p.ticks-p.createdIn[c.Serial] <= 1 && !rapid.Bool().Draw(m.t, "waited elsewhere")
		a.event = c
	}
	for p.delivered < a.after {
		m.deliverEvent(p)
	}
	if failed, _ := a.event.(Failed); a.gone != "" && p.state.entries.at(failed.Serial) != nil && !p.state.entries.at(failed.Serial).answered() {
		m.noteDeletion(p, a.gone)
	}
	m.step(p, a.event)
}
