package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// Verify asks ZooKeeper whether the grant holds: whether all of its nodes are there, by a
// transaction, which no server can answer out of date. nil tells that it did at some
// moment during the call. ErrNotHeld, ErrSessionLost or ErrNodeDeleted tell that it
// does not, the context's error or ErrUnavailable that it is not known. It blocks
// until ZooKeeper answers or ctx ends.
func (g *Grant) Verify(ctx context.Context) error {
	if err := g.Err(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotHeld, g.Path(), err)
	}
	_, err := g.acquisition.handle.manager.zk.MultiIn(ctx, g.acquisition.granted.Epoch, g.Guard()...)
	var failed *zkbridge.OpError
	if errors.As(err, &failed) && !errors.Is(err, messages.Reason_NO_AUTH) {
		return &messages.Lost{Reason: messages.Reason_NODE_DELETED, Detail: failed.Path}
	}
	return err
}

// Guard gives ops with a check in front that the holder's node exists, or one check for
// each of Nodes. A transaction
// of them is refused by ZooKeeper itself once the grant is over, however late it comes
// and whatever the holder believes. (With LocalQueue it is the process that must have
// the lock, by the same node as then.) The operations are go-zookeeper's, *zk.SetDataRequest
// and the like: perform them by Locks.Multi, or by a client of your own.
func (g *Grant) Guard(ops ...any) []any {
	var all []any
	for _, node := range g.Nodes() {
		all = append(all, zkbridge.CheckNode(node))
	}
	return append(all, ops...)
}

// Multi performs operations of go-zookeeper (*zk.CreateRequest, *zk.DeleteRequest,
// *zk.SetDataRequest, *zk.CheckVersionRequest) as one transaction on the session of
// the locks. The results are in the order of ops. It blocks until ZooKeeper answers or
// ctx ends.
//
// A *zkbridge.OpError names the operation because of which nothing was done; for
// operations of Guard with an index below the number of the grant's Nodes it says that the
// grant is over. With messages.Reason_OUTCOME_UNKNOWN it is not known whether anything was done; with any
// other error nothing was.
func (l *Locks) Multi(ctx context.Context, ops ...any) ([]zkbridge.Result, error) {
	return l.bridge.Multi(ctx, ops...)
}

// VerifyToken lets a third party, which was given the token and the node of a grant,
// ask ZooKeeper whether that grant holds. It returns nil if the node was there during the
// call, made by the token's transaction, and the token is of the generation that was in
// force then; since a token becomes known with its grant, the grant was not over. (A
// reader's node may be newer than its token, which is that of the writer that it was. Of
// a node from before the last raise of the generation any generation but a greater one is
// taken for right.) ErrNotHeld tells that the grant is over. It blocks until ZooKeeper
// answers or ctx ends.
//
// It takes the nodes of a Custom lock for what their names say in the known forms: see
// [Custom.VerifyToken].
func (l *Locks) VerifyToken(ctx context.Context, node string, token Token) error {
	return l.manager.verifyToken(ctx, node, token, queue.ReadWrite())
}

// VerifyToken is [Locks.VerifyToken] for a node of this lock. The node of any kind that
// the rule lets a holder of another kind change to may be newer than its token.
func (c *Custom) VerifyToken(ctx context.Context, node string, token Token) error {
	if c.problem != nil {
		return c.problem
	}
	return c.manager.verifyToken(ctx, node, token, c.recipe.rule)
}

func (m *manager) verifyToken(ctx context.Context, node string, token Token, rule queue.Rule) error {
	view, err := m.zk.Look(ctx, node)
	if err != nil {
		return err
	}
	czxid := view.Stat.Czxid
	switch {
	case !view.Exists:
		return fmt.Errorf("%w: %s does not exist", ErrNotHeld, node)
	case czxid < token.Czxid, czxid > token.Czxid && !downgraded(node, rule):
		return fmt.Errorf("%w: %s was made by transaction %#x, the token %v is another's", ErrNotHeld, node, czxid, token)
	}
	present, err := m.generation(ctx) // read last, so that it is not older than the node
	switch {
	case err != nil:
		return err
	case !present.allows(token):
		return fmt.Errorf("%w: generation %d is in force from transaction %#x on, the token %v is another's",
			ErrNotHeld, present.value, present.from, token)
	}
	return nil
}

// downgraded reports whether a node may have the token of one that its owner had before.
func downgraded(node string, rule queue.Rule) bool {
	_, name := split(node)
	_, kind, ok := rule.Parse(name)
	return ok && rule.Follows(kind)
}
