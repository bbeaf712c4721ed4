package remote

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/messages"
)

// problemOfText returns why no message can have a text, or "".
func problemOfText(what, text string) string {
	if utf8.ValidString(text) {
		return ""
	}
	return fmt.Sprintf("%s %q: it must be UTF-8", what, text)
}

// maxDetail bounds the texts for people that a server sends.
const maxDetail = 64 << 10

// readable returns a text for people as a message can have it.
func readable(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxDetail)], "\uFFFD")
}

// withReadableTexts returns a message whose text for people, which may have come from anywhere, can be
// sent.
func withReadableTexts(m *messages.ServerMessage) *messages.ServerMessage {
	m = proto.CloneOf(m)
	switch m := m.What.(type) {
	case *messages.ServerMessage_Refused:
		m.Refused.Detail = readable(m.Refused.Detail)
	case *messages.ServerMessage_Lost:
		m.Lost.Detail = readable(m.Lost.Detail)
	case *messages.ServerMessage_Answer:
		m.Answer.Detail = readable(m.Answer.Detail)
	}
	return m
}
