package actors

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/messages"
)

// Queue is the queue of one lock at one moment, as its nodes show it.
type Queue struct {
	// Path is the lock's path.
	Path string
	// Recipe is "mutex", "read-write", "semaphore", "leader latch" or "custom", by the names of the
	// nodes. It is empty while the lock has no node.
	Recipe string
	// Permits is how many permits a semaphore has. It is 0 if that is not known, or if its
	// processes do not agree: see [Participant.Permits]. Curator's nodes and those of SharedPermits
	// do not show the number.
	Permits int
	// Participants are the holders and the waiters, in their order.
	//
	// The participants of a semaphore are its leases, with the kind "permit", and behind them the
	// requests in the request queue that have no lease, with the kind "request". (A request may
	// appear beside its leases if one transaction has created them together with those of others.)
	// A lease holds by the number of permits of its process. If nothing shows that, Holds is true
	// of the leases that hold for certain, and false of the last leases of a session that has
	// requests in the request queue: they may hold or not.
	//
	// No participant of a custom lock Holds, because only its handle knows the rule: use the
	// handle's Participants. A waiter of kazoo's that polls has no node.
	Participants []Participant
	// Err is the reason why Observe cannot read the queue at present. Participants are the last
	// ones that Observe has read then, or the present ones without tokens if only the generation of
	// tokens cannot be read. Err is nil in the result of Inspect.
	Err error `json:"-"`
}

// String returns the recipe and the path, and how many hold and wait.
func (q Queue) String() string {
	if q.Recipe == "" {
		return q.Path + ": not in use"
	}
	holders := 0
	for _, p := range q.Participants {
		if p.Holds {
			holders++
		}
	}
	return fmt.Sprintf("%s %s: %d hold, %d wait", q.Recipe, q.Path, holders, len(q.Participants)-holders)
}

// Inspect returns the queue of the lock at path, whichever client or library uses it. It finds the
// recipe by the names of the nodes, and needs no handle. A lock that is not in use, and a path that
// does not exist, have an empty queue.
//
// The names in a directory are of one moment during the call, and include all nodes that ZooKeeper
// had acknowledged when Inspect was called; the contenders hold by these names. The data are read
// after them. Nodes that are deleted meanwhile are left out, which lets the contenders behind them
// appear to hold: by then they do. A semaphore's request queue is read before its leases, so that
// no request is missed between the two.
//
// It blocks until ZooKeeper has answered, with one request for each contender, ctx ends, or the
// connection is lost (ErrSuspended). It returns ErrNoAuth if this process may not list the
// directory; contenders whose data it may not read have none. If the generation of tokens alone
// cannot be read, it returns that error, and the queue without tokens.
func (l *Locks) Inspect(ctx context.Context, path string) (Queue, error) {
	q, err := inspection.Inspect.One(ctx, l.at(path), struct{}{})
	return queueOf(path, q), err
}

// queueOf returns the queue of the lock at path.
func queueOf(path string, q inspection.Snapshot) Queue {
	return Queue{Path: path, Recipe: q.Recipe, Permits: q.Permits, Participants: participants(q.Contenders)}
}

// Participant is a contender for a lock: a holder or a waiter.
type Participant struct {
	// Node is the full path of its node.
	Node string
	// Kind is the kind that it wants, such as "read".
	Kind string
	// Host, PID and Program are those of its process, and Owner is the owner's name, as the record
	// in its node's data says; see Config.OmitHolder. What is not known is empty.
	Host    string
	PID     int
	Program string
	Owner   string
	// Identity is the name in the certificate of a process that is a client of a lock server: see
	// remote.Peer. The lock server writes it into the node's data. It is empty for other processes,
	// and for data that are no record.
	Identity string
	// Permits is how many contenders may hold at a time as its process knows the lock, by the name
	// of its node. It is 0 if the name does not show that: only a lease or a node of a custom lock
	// does, of this library, with a fixed number below 2^20.
	Permits int
	// Data is the data of its node, as WithData or another library has written it. For a record it
	// is the text of the record's member data, or nil without it. It is nil if this process may not
	// read the node.
	Data []byte
	// Since is when it has queued: when its node was created, by the clock of ZooKeeper's leader.
	// It is zero if this process may not read the node: servers from 3.8.4 and 3.9.2 on deny that,
	// too, and the session.
	Since time.Time
	// HeldSince is when it came to hold, at the latest, by the clock of this process. It is zero if
	// that is not known: it is known of the holders of this process, and Observe knows it of the
	// participants that came to hold while it watched.
	HeldSince time.Time
	// Session is the ZooKeeper session that owns its node, or 0 if that is not known. Local reports
	// that it is the session of this process, or, with a lock server, that the node was made for a
	// request of this process. A local queue's node, which the clients of a lock server share, is of
	// those that hold by it. Persistent reports that no session owns the node, so that only a client
	// can delete it.
	Session    int64
	Local      bool
	Persistent bool
	// Token is the fencing token of a holder by its node alone. The true token differs if one
	// transaction created several nodes, and for a downgraded reader. Generation is 0 if the node
	// is older than the last raise.
	Token Token
	// Ahead is how many contenders come before it. A child of a semaphore's leases that is no lease
	// does not count, though it takes a permit.
	Ahead int
	// Holds reports that it is first in turn. Its process may not have noticed that yet.
	Holds bool
}

// participants returns contenders as programs see them, with the records in their data.
func participants(contenders []inspection.Contender) (all []Participant) {
	for _, c := range contenders {
		p := Participant{
			Node: c.Node, Kind: c.Kind, Data: c.Data, Session: c.Session, Since: c.Since, HeldSince: c.HeldSince, Token: Token(c.Token),
			Permits: c.Permits, Ahead: c.Ahead, Holds: c.Holds, Local: c.Local, Persistent: c.Session == 0 && !c.Since.IsZero(),
		}
		if h, ok := manager.ParseHolder(c.Data); ok {
			p.Host, p.PID, p.Program, p.Owner, p.Identity, p.Data = h.Host, h.PID, h.Program, h.Owner, h.Identity, nil
			if h.Data != "" {
				p.Data = []byte(h.Data)
			}
		}
		all = append(all, p)
	}
	return all
}

// known returns what is known of the process and the owner.
func (p Participant) known() (all []slog.Attr) {
	for _, text := range []struct{ key, value string }{{"owner", p.Owner}, {"identity", p.Identity}, {"host", p.Host}, {"program", p.Program}} {
		if text.value != "" {
			all = append(all, slog.String(text.key, text.value))
		}
	}
	if p.PID != 0 {
		all = append(all, slog.Int("pid", p.PID))
	}
	if len(p.Data) > 0 {
		all = append(all, slog.String("data", fmt.Sprintf("%.100q", p.Data)))
	}
	return all
}

// String returns the participant for people: whether it holds, its kind, since when, its session,
// what is known of the process and the owner, and its node.
func (p Participant) String() string {
	text := "waits"
	if p.Holds {
		text = "holds"
	}
	text += fmt.Sprintf(" (%s)", p.Kind)
	switch {
	case !p.HeldSince.IsZero():
		text += " since " + p.HeldSince.Format(time.RFC3339)
	case !p.Holds && !p.Since.IsZero():
		text += " since " + p.Since.Format(time.RFC3339)
	}
	if !p.Since.IsZero() {
		if p.Holds {
			text += ", in the queue since " + p.Since.Format(time.RFC3339)
		}
		text += ", session " + messages.FormatSession(p.Session)
	}
	if p.Persistent {
		text += " (none: the node is persistent)"
	}
	for _, known := range p.known() {
		text += fmt.Sprintf(", %s %s", known.Key, known.Value)
	}
	return text + ", node " + p.Node
}

// LogValue implements slog.LogValuer.
func (p Participant) LogValue() slog.Value {
	all := []slog.Attr{slog.Bool("holds", p.Holds), slog.String("kind", p.Kind), slog.String("node", p.Node)}
	if !p.Since.IsZero() {
		all = append(all, slog.String("session", messages.FormatSession(p.Session)), slog.Time("since", p.Since))
	}
	if !p.HeldSince.IsZero() {
		all = append(all, slog.Time("heldSince", p.HeldSince))
	}
	return slog.GroupValue(append(all, p.known()...)...)
}

// Participants returns the holders and the waiters of the lock, in their order: contenders of all
// processes and libraries. Its read includes all writes that ZooKeeper had acknowledged when it was
// called. It blocks until ZooKeeper has answered, with one request for each contender, ctx ends, or
// the connection is lost (ErrSuspended). If the generation of tokens alone cannot be read, it
// returns that error, and the participants without tokens.
//
// The participants of a semaphore are its leases, one for each permit; some leases may belong to
// requests that still wait. A multi-lock has no participants of its own: ask its members.
func (h *handle) Participants(ctx context.Context) ([]Participant, error) {
	q, err := inspection.Participants.One(ctx, h.target(), struct{}{})
	return participants(q.Contenders), err
}
