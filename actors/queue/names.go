package queue

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// The markers of contenders' names: what stands between the unique part of a name and its sequence
// number. (Those of readers and writers lack the minus with which Rule.Markers begin: names of other
// clients need not have it.)
const (
	LockMarker      = "-lock-"    // Curator, go-zookeeper
	LeaseMarker     = "-lease-"   // Curator
	ReadMarker      = "__READ__"  // Curator
	WriteMarker     = "__WRIT__"  // Curator
	LatchMarker     = "-latch-"   // Curator's LeaderLatch
	KazooMarker     = "__lock__"  // kazoo
	KazooReadMarker = "__rlock__" // kazoo
	RecipesMarker   = "x-"        // ZooKeeper's own lock recipe, whose names begin with it
)

// The suffixes of a lock's path that make the paths of its other directories and nodes.
const (
	RequestQueueSuffix      = "/locks"    // a semaphore's request queue
	LeasesSuffix            = "/leases"   // a semaphore's leases
	HeldMarkerSuffix        = "-__held__" // the held marker, which is no child of the directory: other libraries take children for contenders
	KazooRequestQueueSuffix = "-__lock__" // the lock of kazoo's semaphore
)

// form is a form of contenders' names, known by its marker.
type form struct {
	marker string
	kind   Kind
}

// forms are the forms of the names that this library takes for contenders: those of Curator, which
// are also its own, of go-zookeeper's zk.Lock and of kazoo. parseRecipesLock parses the names of
// ZooKeeper's own lock recipe.
var forms = []form{
	{LockMarker, Exclusive},
	{LeaseMarker, Exclusive},
	{ReadMarker, Shared},
	{WriteMarker, Exclusive},
	{KazooMarker, Exclusive},
	{KazooReadMarker, Shared},
}

// parseForm returns the sequence number in a name of a known form, and the form.
func parseForm(name string) (seq int64, f form, ok bool) {
	for _, f := range forms {
		if seq, ok := parseBehind(f.marker, name); ok {
			return seq, f, true
		}
	}
	seq, ok = parseRecipesLock(name)
	return seq, form{RecipesMarker, Exclusive}, ok
}

// parseBehind returns the sequence number behind the last occurrence of a marker in a name.
func parseBehind(marker, name string) (seq int64, ok bool) {
	i := strings.LastIndex(name, marker)
	if i < 0 {
		return 0, false
	}
	return parseSeq(name[i+len(marker):])
}

// Parse returns the sequence number and the kind in a child's name. ok is false for a name of no
// known form: such a child is no contender, unless by a rule with OwnMarkersOnly or CountUnknown.
func Parse(name string) (seq int64, kind Kind, ok bool) {
	seq, f, ok := parseForm(name)
	return seq, f.kind, ok
}

// Parse parses a child's name by the rule's own Markers if OwnMarkersOnly is set, and else like the
// function Parse.
func (r Rule) Parse(name string) (seq int64, kind Kind, ok bool) {
	if !r.OwnMarkersOnly {
		return Parse(name)
	}
	for k, marker := range r.Markers {
		if seq, ok = parseBehind(marker, name); ok {
			return seq, Kind(k), true
		}
	}
	return 0, 0, false
}

// IsContender reports whether a name is a contender's by some rule: it has a known form, or begins
// and ends as the names of this library do.
func IsContender(name string) bool {
	_, ok := Marker(name)
	return ok
}

// Marker returns what a contender's name has between the unique part and the sequence number, such
// as "__READ__" or "-latch-". Recipes and kinds are told apart by it. For ZooKeeper's own recipe it
// is "x-". ok is false for a name that is no contender's by any rule.
//
// In a name of no known form Marker takes the last ten characters for the number. It misreads a
// number of eleven characters, a negative one that only a ZooKeeper before 3.6 makes.
func Marker(name string) (marker string, ok bool) {
	if _, f, known := parseForm(name); known {
		return f.marker, true
	}
	rest, ours := strings.CutPrefix(name, protected)
	if !ours || len(rest) < uuidLen+seqLen {
		return "", false
	}
	end := len(rest) - seqLen
	if _, ok = parseSeq(rest[end:]); ok {
		marker = rest[uuidLen:end]
	}
	return marker, ok
}

// parseRecipesLock returns the sequence number in x-<session>-<seq>, the form of
// zookeeper-recipes-lock.
func parseRecipesLock(name string) (seq int64, ok bool) {
	rest, ok := strings.CutPrefix(name, RecipesMarker)
	if !ok {
		return 0, false
	}
	// The last minus separates the number, or is the sign of a negative one: then the minus before
	// it separates.
	i := strings.LastIndexByte(rest, '-')
	if i > 0 && rest[i-1] == '-' {
		i--
	}
	if i <= 0 {
		return 0, false
	}
	return parseSeq(rest[i+1:])
}

// seqLen is the least length of a sequence number.
const seqLen = 10

// parseSeq parses what ZooKeeper appends to a sequential name: %010d of an int32. That is ten
// characters with the minus, or more if there is no zero in front.
func parseSeq(s string) (int64, bool) {
	digits := strings.TrimPrefix(s, "-")
	if len(s) < seqLen || s[0] == '+' || len(s) > seqLen && digits[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 32)
	return n, err == nil
}

// NearEnd reports whether a sequence number is near the end of ZooKeeper's 32-bit counter. At the
// end ZooKeeper hands out the number 2^31-1 again and again, and order by sequence would let two
// holders in. The last nearEnd numbers count as near: there new requests of this library wait
// outside the queue until the directory can be deleted.
//
// A ZooKeeper before 3.6 counts on from -2^31 instead. A negative number counts as near, too.
func NearEnd(seq int64) bool { return seq < 0 || seq >= 1<<31-nearEnd }

const (
	nearEnd = 1 << 20
	lastSeq = 1<<31 - 1
)

const (
	protected = "_c_" // with which Curator's names begin
	uuidLen   = 36
)

// Prefix returns a name of Curator's form up to the sequence number: _c_<uuid>-lock- for the marker
// "-lock-".
func Prefix(uuid [16]byte, marker string) string {
	b := append(make([]byte, 0, 64), protected...) // short enough for the stack
	for i, part := range [][]byte{uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return string(append(b, marker...))
}

// UUID returns the UUID in a name of Curator's form, and whether it has one. (zk.Lock's names have
// 32 digits in its place.)
func UUID(name string) (uuid [16]byte, ok bool) {
	text, ok := strings.CutPrefix(name, protected)
	if !ok || len(text) < uuidLen || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return uuid, false
	}
	digits := text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:uuidLen] // on the stack
	_, err := hex.Decode(uuid[:], []byte(digits))
	return uuid, err == nil
}

// WithSeq returns the name that ZooKeeper makes of a prefix and a sequence number.
func WithSeq(prefix string, seq int64) string { return fmt.Sprintf("%s%010d", prefix, seq) }

// IsKazooLease reports whether a name has the form of a lease of kazoo: 32 hexadecimal digits, and no
// sequence number.
func IsKazooLease(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}

// RevokeData is the data that a client writes to a holder's node to ask it to release, as Curator
// does.
const RevokeData = "__REVOKE__"
