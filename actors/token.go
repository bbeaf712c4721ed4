package actors

import (
	"cmp"
	"database/sql/driver"
	"fmt"

	"github.com/actorlock/actorlock/messages"
)

// Token is a fencing token: of two conflicting grants of one lock, the later has the
// greater token. A resource that remembers the greatest token it has seen can refuse
// the writes of a holder that lost the lock without noticing.
//
// Czxid is the ZooKeeper transaction that created the holder's node; any client can
// read it from the node's Stat. Step orders grants of one transaction.
type Token struct {
	Czxid int64
	Step  uint32
}

// TokenOf is the token of a grant that an actor was told of.
func TokenOf(granted *messages.Granted) Token {
	return Token{Czxid: granted.GetCzxid(), Step: granted.GetStep()}
}

// Compare gives -1, 0 or +1 as t is less than, equal to or greater than other.
func (t Token) Compare(other Token) int {
	return cmp.Or(cmp.Compare(t.Czxid, other.Czxid), cmp.Compare(t.Step, other.Step))
}

// String is the token's text, always 25 characters. Texts sort as tokens do.
func (t Token) String() string { return fmt.Sprintf("%016x.%08x", uint64(t.Czxid), t.Step) }

// ParseToken reads what String has written.
func ParseToken(text string) (Token, error) {
	var t Token
	var czxid uint64
	n, err := fmt.Sscanf(text, "%16x.%8x", &czxid, &t.Step)
	t.Czxid = int64(czxid)
	if err != nil || n != 2 || t.String() != text {
		return Token{}, invalid(fmt.Sprintf("token %q: it must be 16 and 8 lower-case hexadecimal digits, as in %q", text, Token{Czxid: 0x1f}))
	}
	return t, nil
}

// MarshalText is String, for encoding packages.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText is ParseToken, for encoding packages.
func (t *Token) UnmarshalText(text []byte) (err error) {
	*t, err = ParseToken(string(text))
	return err
}

// Value is String, for database/sql: a CHAR(25) column, or any text column, orders
// tokens by plain comparison.
func (t Token) Value() (driver.Value, error) { return t.String(), nil }

// Scan reads what Value has stored, for database/sql.
func (t *Token) Scan(stored any) (err error) {
	switch text := stored.(type) {
	case string:
		*t, err = ParseToken(text)
	case []byte:
		*t, err = ParseToken(string(text))
	default:
		err = invalid(fmt.Sprintf("token from a %T: it must be text", stored))
	}
	return err
}
