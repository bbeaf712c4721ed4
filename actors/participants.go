package actors

import (
	"context"
	"fmt"
	"time"

	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/actors/queue"
)

// Participant is a contender for a lock: a holder or a waiter.
type Participant struct {
	// Node is the full path of its node.
	Node string
	// Kind is the kind that it wants, such as "read".
	Kind string
	// Data is the data of its node: see WithData.
	Data []byte
	// Since is when its node was created, by the clock of ZooKeeper's leader.
	Since time.Time
	// Session is the ZooKeeper session that owns its node. Mine reports that it is the session of
	// this process.
	Session int64
	Mine    bool
	// Token is the fencing token of a holder by its node alone. The true token differs if one
	// transaction created several nodes, and for a downgraded reader. Generation is 0 if the node
	// is older than the last raise.
	Token Token
	// Ahead is how many contenders come before it.
	Ahead int
	// Holds reports that it is first in turn. Its process may not have noticed that yet.
	Holds bool
}

// Participants returns the holders and the waiters of the lock, in their order: contenders of all
// processes and libraries. Its read includes all writes that ZooKeeper had acknowledged when it
// was called. It blocks until ZooKeeper has answered, with one request for each contender, ctx
// ends, or the connection is lost (ErrSuspended).
//
// The participants of a semaphore are its leases, one for each permit; some leases may belong to
// requests that still wait. A multi-lock has no participants of its own: ask its members.
func (h *handle) Participants(ctx context.Context) ([]Participant, error) {
	if h.problem != nil {
		return nil, h.problem
	}
	directory, rule, err := h.queue(ctx)
	if err != nil {
		return nil, err
	}
	bridge := h.manager.Bridge
	children, err := bridge.Children(ctx, directory)
	if err != nil {
		return nil, err
	}
	index := map[string]int{}
	seen := make([]queue.Child, len(children))
	for i, c := range children {
		index[c.Name], seen[i] = i, queue.Child{Name: c.Name, Czxid: c.Stat.Czxid}
	}
	present, err := readGeneration(ctx, bridge) // read last, so that it is not older than the nodes
	if err != nil {
		return nil, err
	}
	session := bridge.Session().ID
	var all []Participant
	for _, p := range rule.Positions(seen) {
		c := children[index[p.Name]]
		all = append(all, Participant{
			Node:    directory + "/" + p.Name,
			Kind:    h.recipe.KindName(p.Kind),
			Data:    c.Data,
			Since:   time.UnixMilli(c.Stat.Ctime),
			Session: c.Stat.EphemeralOwner,
			Mine:    c.Stat.EphemeralOwner == session,
			Token:   present.token(c.Stat.Czxid),
			Ahead:   p.Ahead,
			Holds:   p.Holds,
		})
	}
	return all, nil
}

// queue returns the directory and the rule of the lock's contenders.
func (h *handle) queue(ctx context.Context) (directory string, rule queue.Rule, err error) {
	if h.recipe.Unlisted {
		return "", rule, shell.Invalid(fmt.Sprintf("a %v has no queue: its waiters are not known", h.recipe))
	}
	if h.recipe.MemberKinds != nil {
		return "", rule, shell.Invalid(fmt.Sprintf("a %v has no queue of its own: ask its members", h.recipe))
	}
	directory, rule = h.path, h.recipe.Rule
	if h.recipe.Permits > 0 {
		n, err := h.permits(ctx)
		if err != nil {
			return "", rule, err
		}
		directory, rule = h.path+recipes.LeaseSuffix, queue.Leases(n)
	}
	return directory, rule, shell.CheckPath(h.path)
}
