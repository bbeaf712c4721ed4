package main

import (
	"fmt"
	"strings"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/examples/internal/contenders"
)

// lock is the queue of one lock, as the page gets it.
type lock struct {
	Path       string         `json:"path"`
	Recipe     string         `json:"recipe"`
	Permits    int            `json:"permits,omitempty"`
	Error      string         `json:"error,omitempty"`
	Contenders []contenderRow `json:"contenders"` // in the order of the queue
}

// contenderRow is a holder or a waiter.
type contenderRow struct {
	contenders.Contender
	Token string `json:"token,omitempty"` // of a holder
}

func newLock(q actors.Queue) lock {
	l := lock{Path: q.Path, Recipe: q.Recipe, Permits: q.Permits, Contenders: make([]contenderRow, len(q.Participants))}
	for i, p := range q.Participants {
		c := contenderRow{Contender: contenders.New(p, i).Printable()}
		if p.Holds {
			c.Token = p.Token.String()
		}
		if len(c.Data) > maxData {
			c.Data = fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(c.Data[:maxData], ""), len(p.Data))
		}
		l.Contenders[i] = c
	}
	if q.Err != nil {
		l.Error = q.Err.Error()
	}
	return l
}

// maxData bounds the data of a node that the page shows.
const maxData = 1 << 10
