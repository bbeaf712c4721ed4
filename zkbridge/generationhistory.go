package zkbridge

import (
	"fmt"
	"math"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// GenerationPath is the node, below the chroot, whose data is the generation as decimal
// text, and GenerationDirectory is its directory. A missing node means generation 0.
const (
	GenerationPath      = GenerationDirectory + "/generation"
	GenerationDirectory = "/actorlock"
)

// ParseGeneration returns the generation in the node's data. The error is INVALID and names the
// data unless that is a decimal number from 0 to 2^64-1.
func ParseGeneration(data []byte) (uint64, error) {
	value, err := strconv.ParseUint(string(data), 10, 64)
	if err != nil {
		if len(data) > 40 {
			data = append(data[:40:40], "..."...)
		}
		return 0, fmt.Errorf("zkbridge: %w: %s: data %q: it must be a decimal number from 0 to %d",
			messages.Reason_INVALID, GenerationPath, data, uint64(math.MaxUint64))
	}
	return value, nil
}

// generationHistory holds the values of the generation's node that a process has seen, and returns
// the generation that was in force at a czxid: the value that the node had then.
//
// The bridge calls asking before it sends a read of the node, which sets a watch as well, and read
// when the read is answered: one read at a time. It calls changed whenever the watch has fired or
// may have been missed, also between the two. It must read the node before it creates anything in a
// session, and again while unread. It calls sessionOver when a session is over. The zero value has
// seen nothing. Only one goroutine may use a history at a time.
type generationHistory struct {
	spans []span // by from; the present one is the last
	czxid int64  // of the node, 0 while it is missing
	next  int32  // the version that follows on the present span's, or noVersion

	missed   bool // the node has changed since the last read was asked for
	due      bool // the node has changed since the last read that was answered
	wentBack bool // the last read has shown less than the present span

	// No token of a former session is greater than the token of this generation and this zxid.
	formerGeneration uint64
	formerZxid       int64
}

// span is the czxids from one write of the node to the next. The value is exact unless the process
// may have missed a write between this one and the next that it has seen.
type span struct {
	from  int64 // the mzxid of the write
	value uint64
	exact bool
}

const (
	maxSpans  = 16 // kept of the history
	noVersion = -1 // of a node that follows on nothing
)

// asking notes that the node is about to be read: a change that is reported from now on may be
// newer than the value that the read returns.
func (g *generationHistory) asking() { g.missed = false }

// changed notes that the node has changed since it was last read.
func (g *generationHistory) changed() { g.missed, g.due = true, true }

// unread reports whether the node has changed since the last read of it, and must be read again.
func (g *generationHistory) unread() bool { return g.due }

// empty reports whether no read has succeeded.
func (g *generationHistory) empty() bool { return len(g.spans) == 0 }

// present returns the present generation, 0 before the first read.
func (g *generationHistory) present() uint64 {
	if g.empty() {
		return 0
	}
	return g.spans[len(g.spans)-1].value
}

// sessionOver notes that a session is over, which has seen no zxid above a given one.
func (g *generationHistory) sessionOver(zxid int64) {
	if present := g.present(); present > g.formerGeneration {
		g.formerGeneration, g.formerZxid = present, 0
	}
	g.formerZxid = max(g.formerZxid, zxid)
}

// isHistoryLost reports whether ZooKeeper has lost transactions that a former session has seen.
// zxid is of a transaction of the present session.
func (g *generationHistory) isHistoryLost(zxid int64) bool { return zxid <= g.formerZxid }

// isStale reports whether tokens would go back: zxid, of a transaction of the present session,
// proves a loss of history, and no generation has come since.
func (g *generationHistory) isStale(zxid int64) bool {
	return g.isHistoryLost(zxid) && g.present() <= g.formerGeneration
}

// mustRaise reports whether tokens would go back: those of this process, or those of a process that
// sees only the node as it is.
func (g *generationHistory) mustRaise(zxid int64) bool { return g.wentBack || g.isStale(zxid) }

// at returns the generation that was in force at a czxid, and reports whether the generation is
// known. It is not known before the first read, for czxids before the first write that was seen,
// for czxids of a span that is not exact, and, while the node is unread, for czxids of the present
// span. Nor is it known if the token would not be greater than all tokens of former sessions.
func (g *generationHistory) at(czxid int64) (generation uint64, known bool) {
	for i := len(g.spans) - 1; i >= 0; i-- {
		if s := g.spans[i]; s.from <= czxid {
			isLater := s.value > g.formerGeneration || czxid > g.formerZxid
			return s.value, s.exact && isLater && !(g.due && i == len(g.spans)-1)
		}
	}
	return 0, false
}

// read adds the result of a read of the node. It returns an error, for the log, if the data is no
// generation, or if the node was deleted or set to a smaller generation than the process has known:
// the known one stays in force, and mustRaise reports true. (An answer of a server that lags
// behind, in a new session, looks the same: a write at its version fails.)
//
// A greater generation of a lower mzxid comes from another ensemble, or from a restored one, and
// begins a new history; so does another node.
func (g *generationHistory) read(data []byte, stat zk.Stat, exists bool) error {
	g.due, g.missed, g.wentBack = g.missed, false, false
	var value uint64
	if exists {
		var err error
		if value, err = ParseGeneration(data); err != nil {
			g.keep()
			return err
		}
	} else {
		stat = zk.Stat{Version: noVersion}
	}
	if len(g.spans) > 0 {
		last := len(g.spans) - 1
		present := g.spans[last]
		switch {
		case value == present.value && stat.Mzxid == present.from:
			g.next = stat.Version + 1
			return nil
		case value < present.value || value == present.value && stat.Mzxid < present.from:
			g.keep()
			g.wentBack = true
			if !exists {
				return fmt.Errorf("%s was deleted: the generation stays %d", GenerationPath, present.value)
			}
			return fmt.Errorf("%s went back to %d by transaction %#x: the generation stays %d, of transaction %#x",
				GenerationPath, value, stat.Mzxid, present.value, present.from)
		case stat.Mzxid <= present.from || g.czxid != 0 && stat.Czxid != g.czxid:
			g.spans = nil
		case stat.Version != g.next:
			g.spans[last].exact = false
		}
	}
	g.spans = append(g.spans, span{stat.Mzxid, value, true})
	if len(g.spans) > maxSpans {
		g.spans = append(g.spans[:0], g.spans[1:]...)
	}
	g.czxid, g.next = stat.Czxid, stat.Version+1
	return nil
}

// keep keeps the present generation although the node has another, or none. It also drops the
// history before: a restored ensemble may use its czxids again.
func (g *generationHistory) keep() {
	if n := len(g.spans); n > 1 {
		g.spans = append(g.spans[:0], g.spans[n-1])
	}
	g.next = noVersion
}

// GenerationACL returns the ACL of the generation's node and of its directory: the ACL of [Config],
// and the right to READ for all.
func (b *Bridge) GenerationACL() []zk.ACL {
	return zkconn.WithPublicRead(b.cfg.ACL)
}
