// Package contenders has the holders and waiters of a lock as the examples show them: lockrun
// prints them as JSON, and the page of lockview gets the same.
package contenders

import (
	"time"
	"unicode/utf8"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/examples/internal/console"
	"github.com/actorlock/actorlock/messages"
)

// Contender is a holder or a waiter. Unknown fields are empty.
type Contender struct {
	Place      int       `json:"place"` // from 0
	Holds      bool      `json:"holds"`
	Kind       string    `json:"kind,omitempty"`
	Node       string    `json:"node"`
	Session    string    `json:"session,omitempty"`    // hexadecimal; none for a persistent node
	Persistent bool      `json:"persistent,omitempty"` // no end of a session deletes the node
	Since      time.Time `json:"since,omitzero"`
	// HeldSince is known only of those that came to hold while lockrun or lockview watched. Since
	// is when they queued.
	HeldSince time.Time `json:"held_since,omitzero"`
	Permits   int       `json:"permits,omitempty"` // how many may hold at a time as its process knows the lock
	Owner     string    `json:"owner,omitempty"`
	Identity  string    `json:"identity,omitempty"` // of a client of a lock server
	Host      string    `json:"host,omitempty"`
	PID       int       `json:"pid,omitempty"`
	Program   string    `json:"program,omitempty"`
	Data      string    `json:"data,omitempty"`
}

// New returns the Contender for a participant at a place of its queue. Its texts are those of the
// nodes. Data that are no text are quoted as Go quotes them.
func New(p actors.Participant, place int) Contender {
	c := Contender{Place: place, Holds: p.Holds, Kind: p.Kind, Node: p.Node, Persistent: p.Persistent, Since: p.Since,
		HeldSince: p.HeldSince, Permits: p.Permits, Owner: p.Owner, Identity: p.Identity, Host: p.Host, PID: p.PID, Program: p.Program, Data: string(p.Data)}
	if !p.Since.IsZero() && !p.Persistent { // otherwise this process may not read the node
		c.Session = messages.FormatSession(p.Session)
	}
	if !utf8.Valid(p.Data) {
		c.Data = console.Printable(c.Data)
	}
	return c
}

// Printable returns the contender with printable texts. Its node is as it is.
func (c Contender) Printable() Contender {
	for _, text := range []*string{&c.Kind, &c.Owner, &c.Identity, &c.Host, &c.Program, &c.Data} {
		*text = console.Printable(*text)
	}
	return c
}
