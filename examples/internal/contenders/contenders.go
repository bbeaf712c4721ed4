// Package contenders has the holders and waiters of a lock as the examples show them: lockrun prints
// them as JSON, and the page of lockview gets the same.
package contenders

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// Contender is a holder or a waiter. Unknown fields are empty. Its texts are printable.
type Contender struct {
	Place      int       `json:"place"` // from 0
	Holds      bool      `json:"holds"`
	Kind       string    `json:"kind,omitempty"`
	Node       string    `json:"node"`
	Session    string    `json:"session,omitempty"`    // hexadecimal; none for a persistent node
	Persistent bool      `json:"persistent,omitempty"` // no end of a session deletes the node
	Since      time.Time `json:"since,omitzero"`
	// HeldSince is known only of those that came to hold while lockrun or lockview watched. Since is when they queued.
	HeldSince time.Time `json:"held_since,omitzero"`
	Owner     string    `json:"owner,omitempty"`
	Host      string    `json:"host,omitempty"`
	PID       int       `json:"pid,omitempty"`
	Program   string    `json:"program,omitempty"`
	Data      string    `json:"data,omitempty"`
}

// New returns the Contender for a participant at a place of its queue.
func New(p actors.Participant, place int) Contender {
	session := ""
	if !p.Since.IsZero() && !p.Persistent { // otherwise this process may not read the node
		session = messages.FormatSession(p.Session)
	}
	return Contender{Place: place, Holds: p.Holds, Kind: Printable(p.Kind), Node: p.Node, Session: session,
		Persistent: p.Persistent, Since: p.Since, HeldSince: p.HeldSince, Owner: Printable(p.Owner), Host: Printable(p.Host), PID: p.PID, Program: Printable(p.Program),
		Data: Printable(string(p.Data))}
}

// Printable returns the text of another client without characters that control a terminal.
func Printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		quoted := strconv.QuoteToGraphic(text)
		return quoted[1 : len(quoted)-1]
	}
	return text
}
