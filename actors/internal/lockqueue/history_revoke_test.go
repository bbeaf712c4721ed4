package lockqueue

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// revocations are the releases for which other clients have asked.
type revocations struct {
	asked    map[string]bool      // nodes whose data have asked for it
	notified map[requests.ID]bool // requests that know
}

// writeData has a node's data ask for a release, or be as before.
func (m *model) writeData(name string, revoke bool) {
	if m.nodes[name] == nil {
		return
	}
	m.revocations.asked[name] = m.revocations.asked[name] || revoke
	m.zxid++
	written := m.zxid
	m.commit(func(p *process) {
		p.follower.revokeAsked[name], p.follower.writtenAt[name] = revoke, written
		p.fireWatch(name, false)
	})
}

// revokeData returns the data of those nodes of a WatchNodes that ask for a release.
func (p *process) revokeData(f Effect) map[string][]byte {
	data := map[string][]byte{}
	for _, name := range f.Nodes {
		if f.WithData && p.follower.revokeAsked[name] {
			data[name] = []byte(queue.RevokeData)
		}
	}
	return data
}

// checkRevoke checks a RequestRevoke: its request holds and was asked to release.
func (m *model) checkRevoke(p *process, id requests.ID) {
	if p.open[id] != "held" || !m.revocations.asked[p.nodeOf[id]] {
		m.t.Fatalf("process %d: request %d, %s, is asked to release: %+v", p.n, id, p.open[id], m.revocations)
	}
	m.revocations.notified[id] = true
}

// checkRevocations checks that each holder that was asked to release knows it. Nothing may be in
// flight.
func (m *model) checkRevocations() {
	for _, p := range m.processes {
		for _, id := range p.open.In("held") {
			if node := p.nodeOf[id]; m.nodes[node] != nil && m.revocations.asked[node] && !m.revocations.notified[id] {
				m.t.Fatalf("process %d: request %d does not know that it is asked to release: %s", p.n, id, m)
			}
		}
	}
}
