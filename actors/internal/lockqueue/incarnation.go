package lockqueue

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// Incarnation marks the names of one lock actor's nodes. With the serial of a CreateNode it makes
// the UUID that Curator's names begin with. So a name alone says whether a node is this actor's,
// and of which CreateNode.
type Incarnation [8]byte

const (
	prefixStart = "_c_" // with which Curator's names begin
	uuidLength  = 36
	variant     = uint64(0b10) << 62
)

// prefix returns the name of the node of a serial, up to the sequence number: _c_<uuid>-lock- for
// the marker "-lock-".
func (in Incarnation) prefix(serial uint64, marker string) string {
	var id [16]byte
	copy(id[:8], in[:])
	id[6] = id[6]&0x0f | 0x80 // version 8: made up by the application
	binary.BigEndian.PutUint64(id[8:], variant|serial)
	b := append(make([]byte, 0, 64), prefixStart...) // short enough for the stack
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return string(append(b, marker...))
}

// serial returns the serial in a name that prefix made, and whether prefix made it.
func (in Incarnation) serial(name string) (uint64, bool) {
	uuid, ok := strings.CutPrefix(name, prefixStart)
	if !ok || len(uuid) < uuidLength {
		return 0, false
	}
	var digits [32]byte
	n := 0
	for i := range uuidLength {
		if c := uuid[i]; c != '-' && n < len(digits) {
			digits[n] = c
			n++
		}
	}
	var id [16]byte
	if _, err := hex.Decode(id[:], digits[:]); n != len(digits) || err != nil {
		return 0, false
	}
	id[6] = id[6]&0x0f | in[6]&0xf0
	if Incarnation(id[:8]) != in {
		return 0, false
	}
	return binary.BigEndian.Uint64(id[8:]) &^ variant, true
}

// IsOwn reports whether a contender of this State has a node of the name, or had it.
func (s *State) IsOwn(name string) bool {
	_, own := s.incarnation.serial(name)
	return own
}
