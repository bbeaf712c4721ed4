package failures

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// lie is an answer that is not the server's: well-formed at its beginning, but wrong.
type lie struct {
	name string
	ops  []embedded.Op // whose answers it changes; nil for all requests in a session
	tell func(message []byte) [][]byte
	// endsSession: the client must take its session for over.
	endsSession bool
	// leavesNode are the requests by whose answers the client takes its node for deleted, which then stays until its
	// session ends: see believed.
	leavesNode []embedded.Op
}

// opEvent stands for the event of a watch, which answers no request.
const opEvent = embedded.OpAny

// The parts of an answer: xid, zxid and code, and the body.
const (
	answerZxid = 4
	answerCode = 12
	answerBody = 16
	statBytes  = 68
)

var transactions = []embedded.Op{embedded.OpMulti, embedded.OpMultiRead}

var lies = []lie{
	{name: "no xid of a request", tell: withInt(0, 1<<30)},
	{name: "a negative xid", tell: withInt(0, -7)},
	{name: "zxid goes back", tell: withLong(answerZxid, 1), endsSession: true},
	{name: "negative zxid", tell: withLong(answerZxid, -2)},
	{name: "no zxid", tell: withLong(answerZxid, 0)},
	{name: "no body", tell: onBody(func(b []byte) []byte { return nil })},
	{name: "half a body", tell: onBody(func(b []byte) []byte { return b[:len(b)/2] })},
	{name: "a longer body", tell: onBody(func(b []byte) []byte { return append(b, make([]byte, 40)...) })},
	{name: "length -1", tell: withInt(answerBody, -1)},
	{name: "length -2", tell: withInt(answerBody, -2)},
	{name: "a huge length", tell: withInt(answerBody, math.MaxInt32)},
	{name: "twice", tell: func(m []byte) [][]byte { return [][]byte{m, m} }},
	{name: "no results", ops: transactions, tell: onResults(func(all [][]byte) [][]byte { return nil })},
	{name: "a result less", ops: transactions, tell: onResults(func(all [][]byte) [][]byte { return all[1:] })},
	{name: "a result more", ops: transactions, tell: onResults(func(all [][]byte) [][]byte { return append(all, all[0]) })},
	{name: "results without an end", ops: transactions, tell: onBody(func(b []byte) []byte { return b[:max(0, len(b)-9)] })},

	{name: "an event of no kind", ops: []embedded.Op{opEvent}, tell: withInt(answerBody, 99)},
	{name: "an event of no state", ops: []embedded.Op{opEvent}, tell: withInt(answerBody+4, -112)},
	{name: "an event with a negative length", ops: []embedded.Op{opEvent}, tell: withInt(answerBody+8, -2)},
	{name: "an event elsewhere", ops: []embedded.Op{opEvent}, tell: replaced("/lock", "/kcol")},
	{name: "no event", ops: []embedded.Op{opEvent}, tell: func([]byte) [][]byte { return nil }},

	{name: "a code", ops: []embedded.Op{embedded.OpPing, embedded.OpAuth}, tell: withInt(answerCode, -4)},

	{name: "another session", ops: handshakes, tell: withLong(8, 99), endsSession: true},
	{name: "no session", ops: handshakes, tell: withLong(8, 0), endsSession: true},
	{name: "a negative session", ops: handshakes, tell: withLong(8, -99), endsSession: true},
	{name: "no timeout", ops: handshakes, tell: withInt(4, 0)},
	{name: "a negative timeout", ops: handshakes, tell: withInt(4, -1)},
	{name: "a timeout of 1 ms", ops: handshakes, tell: withInt(4, 1), endsSession: true},
	{name: "a timeout of 24 days", ops: handshakes, tell: withInt(4, math.MaxInt32)},
	{name: "another protocol", ops: handshakes, tell: withInt(0, 7)},
	{name: "a password of length -1", ops: handshakes, tell: withInt(16, -1)},
	{name: "a password of length 0", ops: handshakes, tell: withInt(16, 0)},
	{name: "a password of a huge length", ops: handshakes, tell: withInt(16, math.MaxInt32)},
	{name: "another password", ops: handshakes, tell: withLong(20, 99), endsSession: true},
	{name: "half a handshake", ops: handshakes, tell: func(m []byte) [][]byte { return [][]byte{m[:18]} }},
}

var handshakes = []embedded.Op{embedded.OpConnect}

func (l lie) isAbout(op embedded.Op) bool {
	if l.ops == nil {
		return op != embedded.OpConnect && op != opEvent
	}
	return slices.Contains(l.ops, op)
}

func withInt(at int, v int32) func([]byte) [][]byte {
	return func(m []byte) [][]byte {
		if len(m) >= at+4 {
			binary.BigEndian.PutUint32(m[at:], uint32(v))
		}
		return [][]byte{m}
	}
}

func withLong(at int, v int64) func([]byte) [][]byte {
	return func(m []byte) [][]byte {
		if len(m) >= at+8 {
			binary.BigEndian.PutUint64(m[at:], uint64(v))
		}
		return [][]byte{m}
	}
}

func replaced(old, new string) func([]byte) [][]byte {
	return func(m []byte) [][]byte { return [][]byte{bytes.ReplaceAll(m, []byte(old), []byte(new))} }
}

// onBody changes the body of an answer that is no refusal.
func onBody(change func(body []byte) []byte) func([]byte) [][]byte {
	return func(m []byte) [][]byte {
		if len(m) <= answerBody || binary.BigEndian.Uint32(m[answerCode:]) != 0 {
			return [][]byte{m}
		}
		return [][]byte{append(m[:answerBody:answerBody], change(m[answerBody:])...)}
	}
}

// onResults changes the results of a transaction, or of several reads in one request.
func onResults(change func(all [][]byte) [][]byte) func([]byte) [][]byte {
	return onBody(func(body []byte) (changed []byte) {
		var all [][]byte
		rest := body
		for len(rest) > 9 {
			size := resultBytes(embedded.Op(int32(binary.BigEndian.Uint32(rest))), rest)
			all, rest = append(all, rest[:size]), rest[size:]
		}
		if len(all) > 0 {
			all = change(all)
		}
		return append(bytes.Join(all, nil), rest...)
	})
}

// resultBytes returns the size of the first result, its head included.
func resultBytes(op embedded.Op, b []byte) int {
	const head = 9
	text := func(at int) int { return 4 + int(max(0, int32(binary.BigEndian.Uint32(b[at:])))) }
	switch op {
	case embedded.OpCreate:
		return head + text(head)
	case embedded.OpCreate2, embedded.OpCreateContainer, embedded.OpGetData:
		return head + text(head) + statBytes
	case embedded.OpSetData:
		return head + statBytes
	case embedded.OpGetChildren:
		size := head + 4
		for range binary.BigEndian.Uint32(b[head:]) {
			size += text(size)
		}
		return size
	case -1: // an error
		return head + 4
	}
	return head // check, delete
}

// liar tells a client lies in place of the server's answers.
type liar struct {
	mu     sync.Mutex
	told   *lie
	op     embedded.Op
	always bool
	path   string // that the request is about, if it is about one
	most   int    // lies: the liar tells the truth after these
	count  int    // of lies
}

// onAnswer is the OnAnswer of a Network.
func (l *liar) onAnswer(a locktest.Answer) [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told == nil || l.count > l.most || a.Op != l.op || !l.concerns(a) {
		return [][]byte{a.Message}
	}
	l.count++
	tell := l.told.tell
	if !l.always {
		l.told = nil
	}
	return tell(a.Message)
}

// concerns reports whether the request is about no node, or about one of the lock.
func (l *liar) concerns(a locktest.Answer) bool {
	about := a.Request
	if a.Op == opEvent {
		about = a.Message
	}
	return !bytes.Contains(about, []byte("/")) || bytes.Contains(about, []byte(l.path))
}

func (l *liar) begin(told *lie, op embedded.Op, always bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told, l.op, l.always = told, op, always
}

// maxLies is how many answers a client may ask for within the bound of a request for each directory of a lock, twenty
// each second: on a server that breaks each connection it asks about each of them over each new one.
const maxLies = 1200

func (l *liar) lies() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}
