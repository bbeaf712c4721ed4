package queue

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// A form is a way of naming contenders' nodes: what stands between the unique
// part of a name and its sequence number.
type form struct {
	marker string
	kind   Kind
	who    string
}

// forms are the names that this library takes for contenders, wherever in a name
// the marker stands last. Curator (whose nodes ours are), go-zookeeper's zk.Lock,
// kazoo, and the lock of ZooKeeper's own recipes.
var forms = []form{
	{"-lock-", Exclusive, "Curator, go-zookeeper"},
	{"-lease-", Exclusive, "Curator"},
	{"__READ__", Shared, "Curator"},
	{"__WRIT__", Exclusive, "Curator"},
	{"__lock__", Exclusive, "kazoo"},
	{"__rlock__", Shared, "kazoo"},
}

// Parse reads a child's name: its sequence number and its kind. ok is false for
// a name of no known form; such a child is nobody's contender.
func Parse(name string) (seq int64, kind Kind, ok bool) {
	for _, f := range forms {
		if i := strings.LastIndex(name, f.marker); i >= 0 {
			if seq, ok = parseSeq(name[i+len(f.marker):]); ok {
				return seq, f.kind, true
			}
		}
	}
	return parseRecipesLock(name)
}

// Parse reads a child's name as the rule has it: by its own markers if it is Private,
// else like the function Parse.
func (r Rule) Parse(name string) (seq int64, kind Kind, ok bool) {
	if !r.Private {
		return Parse(name)
	}
	for k, marker := range r.Markers {
		if i := strings.LastIndex(name, marker); i >= 0 {
			if seq, ok = parseSeq(name[i+len(marker):]); ok {
				return seq, Kind(k), true
			}
		}
	}
	return 0, 0, false
}

// IsContender tells a name that is a contender's by some rule: it has a known form, or
// begins and ends as ours do.
func IsContender(name string) bool {
	_, _, known := Parse(name)
	rest, ours := strings.CutPrefix(name, protected)
	if known || !ours || len(rest) < uuidLen+seqLen {
		return known
	}
	_, ok := parseSeq(rest[len(rest)-seqLen:])
	return ok
}

// parseRecipesLock reads x-<session>-<seq>, the form of zookeeper-recipes-lock.
func parseRecipesLock(name string) (int64, Kind, bool) {
	rest, ok := strings.CutPrefix(name, "x-")
	if !ok {
		return 0, 0, false
	}
	// The sequence number may be negative: cut at its own minus sign last.
	i := strings.LastIndexByte(rest, '-')
	if i > 0 && rest[i-1] == '-' {
		i--
	}
	if i <= 0 {
		return 0, 0, false
	}
	seq, ok := parseSeq(rest[i+1:])
	return seq, Exclusive, ok
}

// seqLen is the least length of a sequence number.
const seqLen = 10

// parseSeq reads what ZooKeeper appends to a sequential name: %010d of an int32.
func parseSeq(s string) (int64, bool) {
	digits := strings.TrimPrefix(s, "-")
	if len(s) < seqLen || s[0] == '+' || len(s) > seqLen && digits[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 32)
	return n, err == nil
}

// exhausted tells sequence numbers near the end of ZooKeeper's 32-bit counter.
// Beyond it ZooKeeper hands out the same number again and again, and order by
// sequence would let two holders in.
//
// Before 3.6 it counts on from -2^31. If it came to 0 so, without the directory ever having
// been empty, a contender with -1 would rank behind one with 0: after 2^32 creates.
func exhausted(seq int64) bool { return seq < 0 || seq >= 1<<31-1<<20 }

// Incarnation marks the names of one lock actor's nodes. With the serial of the
// attempt it makes the UUID that Curator's names begin with, so that a node can be
// told for ours, and for which attempt, by its name alone.
type Incarnation [8]byte

const (
	protected = "_c_"
	uuidLen   = 36
	variant   = uint64(0b10) << 62
)

// Prefix is the name of the node for a serial, up to the sequence number:
// _c_<uuid>-lock- for the marker "-lock-".
func (in Incarnation) Prefix(serial uint64, marker string) string {
	var id [16]byte
	copy(id[:8], in[:])
	id[6] = id[6]&0x0f | 0x80 // version 8: made up by the application
	binary.BigEndian.PutUint64(id[8:], variant|serial)
	b := append(make([]byte, 0, 64), protected...) // not too long for the stack
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return string(append(b, marker...))
}

// serial is the number in a name that Prefix made, if it did.
func (in Incarnation) serial(name string) (uint64, bool) {
	uuid, ok := strings.CutPrefix(name, protected)
	if !ok || len(uuid) < uuidLen {
		return 0, false
	}
	var digits [32]byte
	n := 0
	for i := range uuidLen {
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
