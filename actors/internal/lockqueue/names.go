package lockqueue

import (
	"encoding/binary"

	"github.com/actorlock/actorlock/actors/queue"
)

// What names of contenders say of who has made them.

// Incarnation marks the names of one lock actor's nodes. With the serial of a CreateNode it makes
// the UUID that Curator's names begin with. So a name alone says whether a node is this actor's,
// and of which CreateNode.
type Incarnation [8]byte

const variant = uint64(0b10) << 62

// prefix returns the name of the node of a serial, up to the sequence number.
func (in Incarnation) prefix(serial uint64, marker string) string {
	var id [16]byte
	copy(id[:8], in[:])
	id[6] = id[6]&0x0f | 0x80 // version 8: made up by the application
	binary.BigEndian.PutUint64(id[8:], variant|serial)
	return queue.Prefix(id, marker)
}

// serial returns the serial in a name that prefix made, and whether prefix made it.
func (in Incarnation) serial(name string) (uint64, bool) {
	id, ok := queue.UUID(name)
	id[6] = id[6]&0x0f | in[6]&0xf0
	if !ok || Incarnation(id[:8]) != in {
		return 0, false
	}
	return binary.BigEndian.Uint64(id[8:]) &^ variant, true
}

// The serials of a State whose rule has a fixed number of permits begin at that number, shifted. So
// the names alone show that two processes do not agree on it.
const (
	permitsShift = 42
	maxPermits   = 1<<20 - 1
)

// serialsOf returns the number above which the serials of a State with the rule begin. It is 0 if
// the number of permits is not known, or too great, and for rules other than those of leases and
// custom locks, whose number is fixed.
func serialsOf(rule *queue.Rule) uint64 {
	if rule.Permits > maxPermits || !rule.CountUnknown && !rule.OwnMarkersOnly {
		return 0
	}
	return uint64(max(rule.Permits, 0)) << permitsShift
}

// creatorOf returns the incarnation in a name of this library, or 0 for other names.
func creatorOf(name string) (creator Incarnation) {
	if id, ok := queue.UUID(name); ok && id[6]>>4 == 8 {
		copy(creator[:], id[:])
	}
	return creator
}

// PermitsOf returns the number of permits of the State that has made a name, or 0 if the name does
// not show it.
func PermitsOf(name string) int {
	id, ok := queue.UUID(name)
	if !ok || id[6]>>4 != 8 || id[8]>>6 != 0b10 {
		return 0
	}
	return int(binary.BigEndian.Uint64(id[8:]) &^ variant >> permitsShift)
}

// clients is a set of kinds of clients, which the names of their contenders tell apart.
type clients uint8

const (
	// curators are clients of Apache Curator.
	curators clients = 1 << iota
	// unknownToCurators are clients for which Curator's do not wait. Curator does not find the
	// number in their names, and compares the names as text.
	unknownToCurators
)

// clientOf returns the kind of client that has made a contender's name. It returns 0 for other
// clients, such as this library.
func clientOf(name string) clients {
	switch marker, _ := queue.Marker(name); marker {
	case queue.KazooMarker, queue.KazooReadMarker, queue.RecipesMarker:
		return unknownToCurators
	}
	// Curator's UUIDs are random, of version 4. Those of this library have version 8.
	if id, ok := queue.UUID(name); ok && id[6]>>4 == 4 {
		return curators
	}
	return 0
}
