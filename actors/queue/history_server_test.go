package queue

import (
	"fmt"
	"math"
	"slices"

	"pgregory.net/rapid"
)

// The server of a world.

func (w *world) add(prefix string, kind Kind, p *process) *node {
	w.births++
	n := &node{name: fmt.Sprintf("%s%010d", prefix, w.nextSeq), seq: w.nextSeq, born: w.births, kind: kind, czxid: w.zxid, proc: p}
	if p != nil {
		n.epoch = p.epoch
	}
	if n.plain = prefix == "plain"; n.plain {
		n.name = fmt.Sprintf("%s%d", prefix, w.zxid)
	}
	// Also for those who do not show it. It sticks at the end: see recipes on ZooKeeper >= 3.6.
	w.nextSeq = min(w.nextSeq+1, math.MaxInt32)
	w.nodes[n.name] = n
	w.changed()
	return n
}

func (w *world) del(name string) {
	if w.nodes[name] == nil {
		return
	}
	w.zxid++
	delete(w.nodes, name)
	w.changed()
	for _, p := range w.procs {
		if p.watches[name] {
			delete(p.watches, name)
			p.events = append(p.events, Wake{Epoch: p.epoch, Node: name, Deleted: true})
			p.emitted++
		}
	}
}

// changed fires the watches on the directory.
func (w *world) changed() {
	for _, p := range w.procs {
		if p.outlook {
			p.outlook = false
			p.events = append(p.events, Wake{Epoch: p.epoch})
			p.emitted++
		}
	}
}

// makeDirectory makes it if it is missing; its numbers begin at 0.
func (w *world) makeDirectory() {
	if w.home == 0 {
		w.zxid++
		w.home, w.nextSeq = w.zxid, 0
	}
}

func (w *world) names() []string {
	if w.home == 0 {
		return nil
	}
	var names []string
	if !w.rule.Strangers {
		names = append(names, "unrelated")
	}
	for name := range w.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// serve executes one of the requests in flight; creates go several at a time.
func (w *world) serve(p *process, i int, batch bool) {
	f := p.requests[i]
	p.requests = slices.Delete(p.requests, i, i+1)
	switch f.Do {
	case DoCreate:
		if f.Beside != "" {
			w.createBeside(p, f)
			return
		}
		creates := []Effect{f}
		for i := 0; batch && i < len(p.requests); {
			if p.requests[i].Do == DoCreate && p.requests[i].Beside == "" {
				creates = append(creates, p.requests[i])
				p.requests = slices.Delete(p.requests, i, i+1)
			} else {
				i++
			}
		}
		w.create(p, creates)
	case DoList:
		p.outlook = p.outlook || f.Watch && w.home != 0
		l := Listed{Epoch: p.epoch, Serial: f.Serial, Children: w.names(), Directory: w.home}
		for _, name := range l.Children {
			if n := w.nodes[name]; f.WithCzxids && n != nil {
				l.Czxids = append(l.Czxids, n.czxid)
			} else if f.WithCzxids {
				l.Czxids = append(l.Czxids, 1)
			}
		}
		p.reply(l)
	case DoWatch:
		var gone []string
		for _, name := range f.Nodes {
			if w.nodes[name] == nil {
				gone = append(gone, name)
			} else {
				p.watches[name] = true
			}
		}
		p.reply(Watched{Epoch: p.epoch, Serial: f.Serial, Gone: gone, Data: w.data(f)})
	case DoRestore:
		w.write(f.Node, false)
	case DoMark, DoRemark, DoClear:
		w.transact(p, f)
	case DoLook:
		w.look(p, f)
	case DoDelete:
		w.del(f.Node)
		if f.Reset && len(w.nodes) == 0 {
			w.home = 0
		}
		p.reply(Deleted{Serial: f.Serial})
	}
}

func (w *world) create(p *process, creates []Effect) {
	w.makeDirectory()
	w.zxid++
	others := len(w.nodes)
	blind := rapid.IntRange(0, 9).Draw(w.t, "blind") // 0: others are not known, 1: nor is anything else
	for step, f := range creates {
		kind := Exclusive
		if _, k, ok := w.rule.Parse(f.Node + "0000000000"); ok {
			kind = k
		}
		if w.rule.own() {
			kind = Own
		}
		n := w.add(f.Node, kind, p)
		e := Created{Epoch: p.epoch, Serial: f.Serial, Node: n.name, Czxid: n.czxid, Step: uint32(step), Others: others, Directory: w.home}
		if blind <= 1 {
			e.Others = -1
		}
		if blind == 0 {
			e.Children = w.names()
		}
		p.reply(e)
	}
}

func (w *world) createBeside(p *process, f Effect) {
	leader := w.nodes[f.Beside]
	if leader == nil {
		p.reply(Failed{Epoch: p.epoch, Serial: f.Serial, Why: NotHeld})
		return
	}
	w.zxid++
	_, kind, _ := w.rule.Parse(f.Node)
	w.nodes[f.Node] = &node{name: f.Node, seq: leader.seq, born: leader.born, kind: kind, czxid: w.zxid, proc: p, epoch: p.epoch}
	p.reply(Created{Epoch: p.epoch, Serial: f.Serial, Node: f.Node, Czxid: w.zxid, Others: -1, Children: w.names(), Directory: w.home})
}

func (p *process) reply(e Event) { p.answers = append(p.answers, answer{e, p.emitted}) }

func (w *world) hear(p *process) {
	e := p.events[0]
	p.events = p.events[1:]
	p.heard++
	w.step(p, e)
}

func (w *world) deliver(p *process, i int) {
	a := p.answers[i]
	p.answers = slices.Delete(p.answers, i, i+1)
	for p.heard < a.after {
		w.hear(p)
	}
	w.step(p, a.event)
}
