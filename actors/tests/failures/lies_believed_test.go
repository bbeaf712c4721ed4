package failures

import (
	"encoding/binary"
	"regexp"
	"slices"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// The requests whose answers have a path, names of nodes, or a stat.
var (
	withPath = []embedded.Op{embedded.OpCreate, embedded.OpCreate2, embedded.OpCreateContainer, embedded.OpMulti}
	withName = append(slices.Clip(withPath), embedded.OpGetChildren2, embedded.OpGetEphemerals, embedded.OpMultiRead)
	lists    = []embedded.Op{embedded.OpGetChildren2, embedded.OpMultiRead}
	withStat = append(slices.Clip(transactions), embedded.OpCreate2, embedded.OpExists, embedded.OpGetData, embedded.OpSetData, embedded.OpGetChildren2)
)

// The places of numbers in a stat.
const (
	statCzxid   = 0
	statMzxid   = 8
	statVersion = 32
	statOwner   = 44
	statPzxid   = 60
)

// believed are lies that a client has to believe where it has nothing to compare them with.
//
// Most of those that change a list leave a node. A list without the node of a contender that waits says that another client has
// deleted it, as an operator does. The contender queues again by a new node, and forgets the former one. If that exists, others
// wait behind it until the session ends or somebody deletes it: no two hold, and a server that is right has no such node. Where
// an answer to a create has another number, always, the client does not know the name of its node.
//
// To delete the node that a list leaves out, in case it exists, was tried. The rows whose lie is told once then leave none. But
// a semaphore of which a rival holds two permits of three is then granted two more, in three runs of four, on a server whose lists always
// show other prefixes: the client finds that the rival's leases do not exist, and does not have nodes of its own in its way any more.
// A node that stays is the lesser harm. A holder's node that is left out would have to stay until the holder, perhaps
// a client of a lock server, has heard of the loss.
var believed = []lie{
	{name: "zeros", leavesNode: lists, tell: onBody(func(b []byte) []byte { clear(b); return b })},
	{name: "a list of zeros", ops: withName, leavesNode: lists, tell: onBody(func(b []byte) []byte {
		if len(b) > 4 {
			clear(b[4:])
		}
		return b
	})},
	{name: "another path", ops: withPath, tell: replaced("/lock", "/kcol")},
	{name: "another prefix", ops: withName, leavesNode: lists, tell: replaced("_c_", "_d_")},
	{name: "a later number", ops: withName, leavesNode: withName, tell: replaced("-00000000", "-00000001")},
	{name: "number 0", ops: withName, leavesNode: withName, tell: numbered("-0000000000")},
	{name: "a negative number", ops: withName, leavesNode: withName, tell: replaced("-00000000", "--0000000")},
	{name: "no number", ops: withName, tell: replaced("-00000000", "-lock-lock")},
	{name: "results in another order", ops: transactions, leavesNode: lists, tell: onResults(func(all [][]byte) [][]byte { slices.Reverse(all); return all })},

	{name: "a stat of zeros", ops: withStat, tell: onStats(func(s []byte) { clear(s) })},
	{name: "an earlier czxid", ops: withStat, tell: onStats(plus(statCzxid, -1))},
	{name: "a later czxid", ops: withStat, tell: onStats(plus(statCzxid, 1))},
	{name: "a later mzxid", ops: withStat, tell: onStats(plus(statMzxid, 1))},
	{name: "an earlier mzxid", ops: withStat, tell: onStats(plus(statMzxid, -1))},
	{name: "another version", ops: withStat, tell: onStats(plus(statVersion, 1<<32))},
	{name: "another owner", ops: withStat, tell: onStats(plus(statOwner, 1))},
	{name: "a later pzxid", ops: withStat, tell: onStats(plus(statPzxid, 1))},
}

// plus adds to a number of a stat.
func plus(at int, n int64) func([]byte) {
	return func(stat []byte) {
		binary.BigEndian.PutUint64(stat[at:], binary.BigEndian.Uint64(stat[at:])+uint64(n))
	}
}

var sequenceNumber = regexp.MustCompile("-[0-9]{10}")

func numbered(all string) func([]byte) [][]byte {
	return func(m []byte) [][]byte { return [][]byte{sequenceNumber.ReplaceAll(m, []byte(all))} }
}

// onStats changes each stat of an answer, which is the end of its body, or of a result.
func onStats(change func(stat []byte)) func([]byte) [][]byte {
	inResults := onResults(func(all [][]byte) [][]byte {
		for _, result := range all {
			if hasStat(result) {
				change(result[len(result)-statBytes:])
			}
		}
		return all
	})
	inBody := onBody(func(b []byte) []byte {
		if len(b) >= statBytes {
			change(b[len(b)-statBytes:])
		}
		return b
	})
	return func(m []byte) [][]byte {
		if isEndOfResults(m) {
			return inResults(m)
		}
		return inBody(m)
	}
}

// isEndOfResults reports whether an answer ends as that to a transaction does.
func isEndOfResults(m []byte) bool {
	return len(m) >= answerBody+9 && string(m[len(m)-9:]) == "\xff\xff\xff\xff\x01\xff\xff\xff\xff"
}

func hasStat(result []byte) bool {
	switch embedded.Op(int32(binary.BigEndian.Uint32(result))) {
	case embedded.OpCreate2, embedded.OpCreateContainer, embedded.OpGetData, embedded.OpSetData:
		return true
	}
	return false
}
