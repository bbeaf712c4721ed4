package requests

import "cmp"

// Token is the fencing token of a grant. actors.Token, which has the same fields, says what they
// are.
type Token struct {
	Generation uint64
	Czxid      int64
	Step       uint32
}

// Compare returns -1, 0 or +1 as t is less than, equal to or greater than other.
func (t Token) Compare(other Token) int {
	return cmp.Or(cmp.Compare(t.Generation, other.Generation), cmp.Compare(uint64(t.Czxid), uint64(other.Czxid)), cmp.Compare(t.Step, other.Step))
}
