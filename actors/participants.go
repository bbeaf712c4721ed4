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
	// Identity is whom the certificate names that the process has as a client of a lock server: see
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
	// Session is the ZooKeeper session that owns its node, or 0 if that is not known. Mine reports
	// that it is the session of this process, or, with a lock server, that the node was made for a
	// request of this process. A local queue's node, which the clients of a lock server share, is of
	// those that hold by it. Persistent reports that no session owns the node, so that only a client
	// can delete it.
	Session    int64
	Mine       bool
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

// participants returns contenders as programs see them, with the records in their data.
func participants(contenders []inspection.Contender) (all []Participant) {
	for _, c := range contenders {
		p := Participant{
			Node: c.Node, Kind: c.Kind, Data: c.Data, Session: c.Session, Since: c.Since, HeldSince: c.HeldSince, Token: Token(c.Token),
			Permits: c.Permits, Ahead: c.Ahead, Holds: c.Holds, Mine: c.Mine, Persistent: c.Session == 0 && !c.Since.IsZero(),
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
