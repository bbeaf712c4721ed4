package remote

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/actorlock/actorlock/messages"
)

// Whatever text comes from the ensemble, from Allow or from a client, the message that has it can be sent.
func TestTextsCanBeSent(t *testing.T) {
	long := strings.Repeat("€", 1<<20) // maxDetail is within a character
	for _, text := range []string{"", "caf\xe9", "\xff", long, strings.Repeat("\xff", 3<<20)} {
		for _, m := range []*messages.ServerMessage{
			{What: &messages.ServerMessage_Refused{Refused: &messages.Refused{RequestId: 7, Reason: messages.Reason_NO_AUTH, Detail: text}}},
			{What: &messages.ServerMessage_Lost{Lost: &messages.Lost{RequestId: 7, Reason: messages.Reason_NODE_DELETED, Detail: text}}},
			{What: &messages.ServerMessage_Answer{Answer: &messages.Answer{Id: 7, Reason: messages.Reason_NO_AUTH, Detail: text}}},
		} {
			var c servedClient
			c.send(m)
			if len(c.messages.pending) != 1 || c.messages.sizes[0] > maxNumbered {
				t.Fatalf("%.20q: %d messages wait", text, len(c.messages.pending))
			}
			if _, first := c.messages.nextFrame(); len(first) != 1 {
				t.Errorf("%.20q is in no frame", text)
			}
		}
		if r := readable(text); !utf8.ValidString(r) || len(r) > 3*maxDetail || len(text) > 0 && r == "" {
			t.Errorf("%.20q became %d bytes", text, len(r))
		}
	}
}
