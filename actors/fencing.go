package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// Generation returns the generation of the ensemble, with which tokens begin: 0 until
// [Locks.RaiseGeneration] is called for the first time. Its read includes all writes that
// ZooKeeper had acknowledged when it was called. It blocks until ZooKeeper answers or ctx ends.
// It returns ErrInvalid if the node's data are no generation; its other errors are those of
// [Locks.Multi], without messages.Reason_OUTCOME_UNKNOWN.
func (l *Locks) Generation(ctx context.Context) (uint64, error) {
	return inSomeSession(ctx, l.manager, func() (uint64, error) { return inspection.GetGeneration.One(ctx, l.at(""), struct{}{}) })
}

// RaiseGeneration raises the generation of the ensemble, by one or to the present Unix time in
// seconds, whichever is more, and returns it. From then on all grants, of all processes, have
// tokens greater than those of earlier generations, whatever their czxids. An operator calls it
// after restoring the ensemble from a backup, or after moving the locks to another ensemble,
// where transaction numbers are smaller than they were. Locks that live through a restore notice
// it in their next session, and raise the generation themselves.
//
// The price is that each process that uses the ensemble, this one included, loses its session once,
// and with it all its grants (ErrSessionLost), as after a long outage. Waiters queue again in the
// next session. The locks are free when the former sessions are closed, Config.Margin later.
//
// The clock of this machine must not be behind the clock of the last raise that the backup does
// not know of. The node is [zkbridge.GenerationPath]. A missing node or directory is created
// with the configured ACL and the right to READ for all.
//
// It blocks until ZooKeeper answers in a session that lives, or ctx ends. It returns ErrInvalid if
// the node's data are no generation, or the greatest one; its other errors are those of
// [Locks.Multi]. After an error the generation may have been raised, or may be raised later;
// another call does no harm. Calls at one time may return the same generation. Locks of a lock server
// refuse it.
func (l *Locks) RaiseGeneration(ctx context.Context) (uint64, error) {
	if err := l.needsZooKeeper("RaiseGeneration", "an operator raises the generation there"); err != nil {
		return 0, err
	}
	bridge := l.manager.Bridge
	var aim uint64 // the generation of the last attempt, which may have been written: then no other is needed
	for {
		was, err := inSomeSession(ctx, l.manager, func() (inspection.Generation, error) { return inspection.ReadGeneration(ctx, bridge) })
		if err != nil || aim > 0 && was.Value >= aim {
			return was.Value, err
		}
		if aim, err = bridge.NextGeneration(was.Value); err != nil {
			return 0, err
		}
		err = bridge.WriteGeneration(ctx, was.Node, aim)
		switch {
		case err == nil:
			return aim, nil
		case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode):
			// Another process has written, created or deleted the node meanwhile.
		case errors.Is(err, messages.Reason_SESSION_LOST), errors.Is(err, messages.Reason_OUTCOME_UNKNOWN):
			// A raise ends this session, too, before its answer: the next session shows it.
		default:
			return 0, err
		}
	}
}

// inSomeSession reads in the present session, or in the next one if it ends meanwhile.
func inSomeSession[V any](ctx context.Context, m *manager.Manager, read func() (V, error)) (V, error) {
	for {
		v, err := read()
		if !errors.Is(err, messages.Reason_SESSION_LOST) {
			return v, err
		}
		awaitConnection(ctx, m.Session)
		if cause := context.Cause(ctx); cause != nil {
			return v, m.Session.Explain(cause)
		}
	}
}

// awaitConnection blocks until there is a session with a connection, ctx ends, or the session's end
// is final.
func awaitConnection(ctx context.Context, session manager.AnySession) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for s := range session.Sessions(ctx) {
		if s.State == messages.SessionState_CONNECTED {
			return
		}
	}
}

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
