package actors

import (
	"context"
	"fmt"
	"time"

	"github.com/actorlock/actorlock/actors/queue"
)

// Participant is a contender for a lock: who holds it, or waits.
type Participant struct {
	// Node is the full path of its node.
	Node string
	// Kind is what it wants the lock for, such as "read".
	Kind string
	// Data is that of its node: see WithData.
	Data []byte
	// Since is when it asked, by the clock of ZooKeeper's leader.
	Since time.Time
	// Session is the ZooKeeper session that owns it, and Mine tells that it is ours.
	Session int64
	Mine    bool
	// Token is its fencing token, if it holds, unless it came to hold in a special
	// way: as one of several in one transaction, or by a downgrade. Generation is 0
	// if the node is older than the last raise.
	Token Token
	// Ahead is how many contenders come before it.
	Ahead int
	// Holds tells that it is its turn. Whether its process has noticed is another
	// matter.
	Holds bool
}

// Participants tells who holds the lock and who waits, in their order: contenders of
// all processes and libraries. It sees no less than what ZooKeeper had acknowledged
// when it was called. It blocks until ZooKeeper has answered, a request for each of
// them, ctx ends, or the connection is lost (ErrSuspended).
//
// Those of a semaphore are its leases, one for each permit; some are made for requests
// that still wait. A multi-lock has none of its own: ask its members.
func (h *handle) Participants(ctx context.Context) ([]Participant, error) {
	if h.problem != nil {
		return nil, h.problem
	}
	directory, rule, err := h.queue(ctx)
	if err != nil {
		return nil, err
	}
	children, err := h.manager.zk.Children(ctx, directory)
	if err != nil {
		return nil, err
	}
	found := map[string]int{}
	seen := make([]queue.Child, len(children))
	for i, c := range children {
		found[c.Name], seen[i] = i, queue.Child{Name: c.Name, Czxid: c.Stat.Czxid}
	}
	present, err := h.manager.generation(ctx) // read last, so that it is not older than the nodes
	if err != nil {
		return nil, err
	}
	session := h.manager.zk.Session().ID
	var all []Participant
	for _, s := range rule.Positions(seen) {
		c := children[found[s.Name]]
		all = append(all, Participant{
			Node:    directory + "/" + s.Name,
			Kind:    h.recipe.kindName(s.Kind),
			Data:    c.Data,
			Since:   time.UnixMilli(c.Stat.Ctime),
			Session: c.Stat.EphemeralOwner,
			Mine:    c.Stat.EphemeralOwner == session,
			Token:   present.token(c.Stat.Czxid),
			Ahead:   s.Ahead,
			Holds:   s.Holds,
		})
	}
	return all, nil
}

// queue is where those stand who hold or wait, and by which rule.
func (h *handle) queue(ctx context.Context) (directory string, rule queue.Rule, err error) {
	if h.recipe.unlisted {
		return "", rule, invalid(fmt.Sprintf("a %v has no queue: nobody knows who waits", h.recipe))
	}
	if h.recipe.memberKinds != nil {
		return "", rule, invalid(fmt.Sprintf("a %v has no queue of its own: ask its members", h.recipe))
	}
	directory, rule = h.path, h.recipe.rule
	if h.recipe.permits > 0 {
		n, err := h.permits(ctx)
		if err != nil {
			return "", rule, err
		}
		directory, rule = h.path+leaseSuffix, queue.Leases(n)
	}
	return directory, rule, checkPath(h.path)
}

// kindName is what a kind is called; others' kinds that the recipe does not tell apart
// are like its first.
func (r *recipe) kindName(k queue.Kind) string {
	if int(k) < len(r.kinds) {
		return r.kinds[k]
	}
	return r.kinds[0]
}
