package actors

import (
	"database/sql/driver"
	"fmt"
	"log/slog"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/messages"
)

// Token is a fencing token: of two conflicting grants of one lock, the later has the
// greater token. A resource that remembers the greatest token it has seen can refuse
// the writes of a holder that lost the lock without noticing.
//
// Generation is the ensemble's: see [Locks.RaiseGeneration]. Czxid is the
// ZooKeeper transaction that created the holder's node; any client can read it from the
// node's Stat. Step orders grants of one transaction. Tokens are ordered by Generation,
// then by Czxid, then by Step.
type Token struct {
	Generation uint64
	Czxid      int64
	Step       uint32
}

// TokenOf returns the token of the grant in a Granted message.
func TokenOf(granted *messages.Granted) Token {
	return Token(lock.TokenOf(granted, granted.GetStep()))
}

// Compare returns -1, 0 or +1 as t is less than, equal to or greater than other.
func (t Token) Compare(other Token) int {
	return requests.Token(t).Compare(requests.Token(other))
}

// String returns the token's text: generation, czxid and step as 16, 16 and 8
// hexadecimal digits, always 42 characters. Texts sort as tokens do.
func (t Token) String() string {
	return requests.Token(t).String()
}

// LogValue implements slog.LogValuer by String.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// ParseToken returns the token of a text that String has returned. It returns ErrInvalid for any
// other text.
func ParseToken(text string) (Token, error) {
	t, ok := requests.ParseToken(text)
	if !ok {
		return Token{}, check.Invalid(fmt.Sprintf("token %q: it must be 16, 16 and 8 lower-case hexadecimal digits, as in %q", text, Token{Czxid: 0x1f}))
	}
	return Token(t), nil
}

// MarshalText implements encoding.TextMarshaler by String.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler by ParseToken.
func (t *Token) UnmarshalText(text []byte) (err error) {
	*t, err = ParseToken(string(text))
	return err
}

// Value implements driver.Valuer by String: a CHAR(42) column, or any text column, orders
// tokens by plain comparison.
func (t Token) Value() (driver.Value, error) { return t.String(), nil }

// Scan implements sql.Scanner for texts of Value.
func (t *Token) Scan(stored any) (err error) {
	switch text := stored.(type) {
	case string:
		*t, err = ParseToken(text)
	case []byte:
		*t, err = ParseToken(string(text))
	default:
		err = check.Invalid(fmt.Sprintf("token from a %T: it must be text", stored))
	}
	return err
}
