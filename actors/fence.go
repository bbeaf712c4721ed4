package actors

import (
	"context"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/zkbridge"
)

// Verify asks ZooKeeper whether the grant holds: whether all of its nodes exist, by a
// transaction, which no server can answer out of date. It returns nil if the grant held at some
// moment during the call; ErrNotHeld, ErrSessionLost or ErrNodeDeleted if it does not hold; and
// the context's error or ErrUnavailable if that is not known. It blocks until ZooKeeper answers
// or ctx ends.
func (g *Grant) Verify(ctx context.Context) error {
	if err := g.Err(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotHeld, g.Path(), err)
	}
	_, err := inspection.Verify.One(ctx, g.acquisition.handle.target(), inspection.GrantNodes{Session: g.Session(), Nodes: g.Nodes()})
	return err
}

// Guard returns ops with checks in front that the holder's node exists: one check for each of
// Nodes. ZooKeeper itself refuses a transaction of them once the grant is over, however late it
// comes and whatever the holder believes. (With LocalQueue the checks show that the process
// still has the lock by the same node.) The operations are go-zookeeper's, *zk.SetDataRequest
// and the like: perform them by Locks.Multi, or by a ZooKeeper client of your own. Locks of a lock
// server have no Multi.
func (g *Grant) Guard(ops ...any) []any {
	var all []any
	for _, node := range g.Nodes() {
		all = append(all, zkbridge.CheckNode(node))
	}
	return append(all, ops...)
}

// Multi performs operations of go-zookeeper (*zk.CreateRequest, *zk.DeleteRequest,
// *zk.SetDataRequest, *zk.CheckVersionRequest) as one transaction on the session of the locks.
// The results are in the order of ops. It blocks until ZooKeeper answers or ctx ends.
//
// A *zkbridge.OpError names the operation because of which nothing was done; if its index is
// below the number of the grant's Nodes, for operations of Guard, the grant is over. After
// messages.Reason_OUTCOME_UNKNOWN the operations were done or not; after any other error none of
// them was.
//
// Locks of a lock server refuse it: pass the grant's Token to the resource, or ask Grant.Verify.
func (l *Locks) Multi(ctx context.Context, ops ...any) ([]zkbridge.Result, error) {
	if err := l.needsZooKeeper("Multi", "pass the grant's Token to the resource, or ask Grant.Verify"); err != nil {
		return nil, err
	}
	return l.manager.Bridge.Multi(ctx, ops...)
}

// VerifyToken lets a third party, which was given the token and the node of a grant, ask
// ZooKeeper whether that grant holds. It returns nil if the node existed during the call, created
// by the token's transaction, and the token is of the generation that was in force then: a token
// becomes known with its grant, so the grant was not over. It returns ErrNotHeld if the grant is
// over. It blocks until ZooKeeper answers or ctx ends.
//
// The node of a downgraded reader may be newer than its token, which it keeps from its time as
// the writer. The token of a node from before the last raise of the generation passes with any
// generation that is not greater.
//
// VerifyToken reads the names of all nodes in the known forms. For the nodes of a Custom lock
// use [Custom.VerifyToken].
func (l *Locks) VerifyToken(ctx context.Context, node string, token Token) error {
	_, err := inspection.VerifyToken.One(ctx, l.at(node), requests.Token(token))
	return err
}

// VerifyToken is [Locks.VerifyToken] for a node of this lock. The node may be newer than its
// token if the rule lets a holder of another kind change to the node's kind.
func (c *Custom) VerifyToken(ctx context.Context, node string, token Token) error {
	if c.problem != nil {
		return c.problem
	}
	return inspection.CheckToken(ctx, c.manager.Bridge, node, requests.Token(token), c.recipe.Rule)
}
