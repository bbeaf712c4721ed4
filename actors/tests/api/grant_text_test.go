package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
)

// logLine returns the line that a logger writes of a value.
func logLine(v any) string {
	var log locktest.Log
	log.Logger().Info("now", "is", v)
	return log.Take()[0]
}

func TestTextOfAGrant(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		mu := b.Mutex()
		g := locktest.Lock(b, mu, actors.WithOwner("me"))
		id := messages.FormatSession(g.Session())
		for _, text := range []string{fmt.Sprint(g), fmt.Sprintf("%+v", g)} {
			locktest.ExpectParts(b, text, "grant of "+b.LockPath+" by "+g.Node()+", token "+g.Token().String()+", session "+id)
		}
		locktest.ExpectParts(b, logLine(g), "is.path="+b.LockPath, "is.owner=me", "is.node="+g.Node(), "is.token="+g.Token().String(), "is.session="+id)
		if strings.Contains(logLine(g), "error") {
			b.Error(logLine(g))
		}
		locktest.ExpectParts(b, logLine(g.Token()), "is="+g.Token().String())
		locktest.Unlock(b, g)
		locktest.ExpectParts(b, fmt.Sprint(g), ": grant was released")
		locktest.ExpectParts(b, logLine(g), "is.error=\"grant was released\"")
	})
}
