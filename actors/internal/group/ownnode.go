package group

import (
	"time"

	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/internal/partition"
)

// Another program may overwrite the node of a member. A process that reads the node after that does not know
// the member, and does not read the node again. So a member reads its own node now and then, and publishes
// again if the data are not those of its record.

// rereading is the time between two reads of a member's own node. It bounds how often a member
// publishes because another program overwrites each of its nodes.
const rereading = 30 * time.Second

// Messages of a member's actor to itself.
type (
	rereadDue struct{}
	// reread is what the member has read of the node of a record.
	reread struct {
		record *lockRequest
		node   inspection.NodeData
		err    error
	}
)

func (p *publisher) rereadLater() { p.member.after(rereading, rereadDue{}) }

// reread reads the node of the present record in a goroutine of its own.
func (p *publisher) reread() {
	record, node := p.present, p.node()
	switch {
	case p.leaving:
		return
	case node == "":
		p.rereadLater()
		return
	}
	m := p.member
	go func() {
		data, err := inspection.ReadData.One(m.life, &inspection.Target{Manager: m.Manager, Path: node}, struct{}{})
		m.self.Tell(reread{record, data, err})
	}()
}

// node returns the path of the present record, or "" if it is not in the list that was read last.
func (p *publisher) node() string {
	state := p.member.state.Load()
	if p.present == nil || state == nil {
		return ""
	}
	for i := range state.Snapshot.Contenders {
		if c := &state.Snapshot.Contenders[i]; publishedBy(c.Node) == p.number {
			return c.Node
		}
	}
	return ""
}

// onReread publishes again if another program has overwritten the present record. A member that cannot read
// its node, such as one of an old lock server, does not know.
func (p *publisher) onReread(msg reread) {
	if p.leaving {
		return
	}
	p.rereadLater()
	if msg.err != nil || !msg.node.Exists || msg.record != p.present || partition.SameRecord(msg.node.Data, p.present.acquire.Data) {
		return
	}
	if !p.overwritten {
		p.overwritten = true
		p.member.Manager.Log.Warn("another program overwrites the node of a member of a group: the member publishes again, every 30 s at most",
			"path", p.present.path, "do", "have the program leave the nodes of the group alone")
	}
	p.again(0)
}
