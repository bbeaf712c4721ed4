package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/actorlock/actorlock/actors"
)

// lock is the queue of one lock, as the page gets it. The members of a contender are those of
// lockrun who -json.
type lock struct {
	Path       string      `json:"path"`
	Recipe     string      `json:"recipe"`
	Permits    int         `json:"permits,omitempty"`
	Error      string      `json:"error,omitempty"`
	Contenders []contender `json:"contenders"` // in the order of the queue
}

// contender is a holder or a waiter.
type contender struct {
	Place   int       `json:"place"` // from 0
	Holds   bool      `json:"holds"`
	Kind    string    `json:"kind,omitempty"`
	Node    string    `json:"node"`
	Session string    `json:"session"` // hexadecimal
	Since   time.Time `json:"since,omitzero"`
	Owner   string    `json:"owner,omitempty"`
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Program string    `json:"program,omitempty"`
	Data    string    `json:"data,omitempty"`
	Token   string    `json:"token,omitempty"` // of a holder
}

func newLock(q actors.Queue) lock {
	l := lock{Path: q.Path, Recipe: q.Recipe, Permits: q.Permits, Contenders: make([]contender, len(q.Participants))}
	for i, p := range q.Participants {
		c := contender{Place: i, Holds: p.Holds, Kind: p.Kind, Node: p.Node, Session: sessionText(p.Session), Since: p.Since,
			Owner: p.Owner, Host: p.Host, PID: p.PID, Program: p.Program, Data: dataText(p.Data)}
		if p.Holds {
			c.Token = p.Token.String()
		}
		l.Contenders[i] = c
	}
	if q.Err != nil {
		l.Error = q.Err.Error()
	}
	return l
}

// sessionText returns a session's number as ZooKeeper's logs have it.
func sessionText(id int64) string { return fmt.Sprintf("%#x", uint64(id)) }

// maxData bounds the data of a node that the page shows.
const maxData = 1 << 10

// dataText returns data of a node as text: what is no text is shown in Go's quotes.
func dataText(data []byte) string {
	more := ""
	if len(data) > maxData {
		more = fmt.Sprintf("... (%d bytes)", len(data))
		data = data[:maxData]
	}
	text := strings.ToValidUTF8(string(data), "")
	if utf8.Valid(data) && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) {
		return text + more
	}
	return fmt.Sprintf("%q", data) + more
}
