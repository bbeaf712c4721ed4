package actors_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// logLine returns the line that a logger writes of a value.
func logLine(v any) string {
	var log logs
	log.logger().Info("now", "is", v)
	return log.take()[0]
}

func TestTextOfAGrant(t *testing.T) {
	each(t, func(b *testLock) {
		mu := b.mutex()
		g := lock(b, mu, actors.WithOwner("me"))
		id := messages.FormatSession(g.Session())
		for _, text := range []string{fmt.Sprint(g), fmt.Sprintf("%+v", g)} {
			contains(b, text, "grant of "+b.path+" by "+g.Node()+", token "+g.Token().String()+", session "+id)
		}
		contains(b, logLine(g), "is.path="+b.path, "is.owner=me", "is.node="+g.Node(), "is.token="+g.Token().String(), "is.session="+id)
		if strings.Contains(logLine(g), "error") {
			b.Error(logLine(g))
		}
		contains(b, logLine(g.Token()), "is="+g.Token().String())
		unlock(b, g)
		contains(b, fmt.Sprint(g), ": grant was released")
		contains(b, logLine(g), "is.error=\"grant was released\"")
	})
}
