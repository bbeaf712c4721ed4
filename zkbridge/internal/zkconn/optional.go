package zkconn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync/atomic"
	"syscall"

	"github.com/go-zookeeper/zk"
)

// optionalKind is a kind of request that not every server knows: others can take its place. Some
// servers answer that they do not know it, some hang up, and some end the session with that.
type optionalKind uint8

const (
	notOptional    optionalKind = iota
	optContainer                // the create of a container
	optContainerOp              // in a transaction
	optCreate2
	optMultiRead
	optSetWatches
	optEphemerals
	optRemoveWatches
	optionalKinds // how many there are, and notOptional
)

var optionalNames = [optionalKinds]string{"", "createContainer", "createContainer in a transaction", "create2", "multiRead", "setWatches", "getEphemerals", "removeWatches"}

// kindOf returns the kind of a message. A transaction makes containers first.
func kindOf(message []byte) optionalKind {
	op := int32(binary.BigEndian.Uint32(message[lengthSize+xidSize:]))
	switch op {
	case opMulti:
		if r := (reader{rest: message[headerSize:]}); r.int() == opCreateContainer {
			return optContainerOp
		}
	case opCreateContainer:
		return optContainer
	case opCreate2:
		return optCreate2
	case opMultiRead:
		return optMultiRead
	case opSetWatches:
		return optSetWatches
	case opGetEphemerals:
		return optEphemerals
	case opRemoveWatches:
		return optRemoveWatches
	}
	return notOptional
}

// kindSet is a set of kinds. The zero value is empty.
type kindSet uint32

func (s kindSet) has(k optionalKind) bool        { return s&(1<<k) != 0 }
func (s kindSet) with(k optionalKind) kindSet    { return s | 1<<k }
func (s kindSet) without(k optionalKind) kindSet { return s &^ (1 << k) }
func (s kindSet) first() optionalKind            { return optionalKind(bits.TrailingZeros32(uint32(s))) }
func (s kindSet) all(yield func(optionalKind) bool) { // in order
	for ; s != 0 && yield(s.first()); s = s.without(s.first()) {
	}
}

const allKinds = kindSet(1<<optionalKinds - 2)

// findings are what a process has found of the optional requests. They outlive sessions: a server that
// ends the session when it does not know a request must not do so again and again.
type findings struct {
	unknown  atomic.Uint32 // a kindSet: not sent, but by a probe
	suspects atomic.Uint32 // a kindSet: unanswered when a server hung up, and not probed yet

	hangUps [optionalKinds]atomic.Int32 // of servers, at probes of each kind that no server has answered since
}

// suspect notes kinds that were unanswered when a server hung up.
func (f *findings) suspect(kinds kindSet) { f.suspects.Or(uint32(kinds)) }

// takeSuspects returns the kinds that are to be probed, and forgets them.
func (f *findings) takeSuspects() kindSet { return kindSet(f.suspects.Swap(0)) }

// UnknownRequests returns the names of the requests that servers do not know, and that the bridge does
// not send until a probe shows that they are known.
func (cfg *Settings) UnknownRequests() (names []string) {
	for k := range kindSet(cfg.found.unknown.Load()).all {
		names = append(names, optionalNames[k])
	}
	return names
}

func (cfg *Settings) knows(k optionalKind) bool { return !kindSet(cfg.found.unknown.Load()).has(k) }

// knowsContainers reports whether containers are created.
func (cfg *Settings) knowsContainers() bool {
	return cfg.knows(optContainer) && cfg.knows(optContainerOp)
}

// noteUnknown has requests of a kind not be sent any more, because of the error of one.
func (cfg *Settings) noteUnknown(k optionalKind, err error) {
	switch was := kindSet(cfg.found.unknown.Or(1 << k)); {
	case was.has(k):
	case k == optContainer || k == optContainerOp:
		if was.has(optContainer) || was.has(optContainerOp) {
			return
		}
		cfg.Log.Warn("the server does not know containers: directories are persistent nodes from now on, which stay when they are empty",
			"error", err, "do", "upgrade the server; delete empty directories by hand")
	default:
		cfg.Log.Info("the server does not know a request: others take its place", "request", optionalNames[k], "error", err)
	}
}

// noteKnown has requests of a kind be sent again.
func (cfg *Settings) noteKnown(k optionalKind) {
	if was := kindSet(cfg.found.unknown.And(^uint32(1 << k))); was.has(k) {
		cfg.Log.Info("the server knows a request now", "request", optionalNames[k])
	}
}

// noteResult notes the result of a request of a kind.
func (cfg *Settings) noteResult(k optionalKind, err error) {
	if errors.Is(err, ServerError(codeMarshalling)) || errors.Is(err, ServerError(CodeUnimplemented)) {
		cfg.noteUnknown(k, err)
	}
}

// errNoContainers is the error of a transaction that was refused because of its containers. It is
// sent again without them.
var errNoContainers = errors.New("the server does not know containers")

// errHungUp is the error of a request that the server may have ended the connection for: see suspects.
var errHungUp = fmt.Errorf("%w by the server, which had this request to answer", zk.ErrConnectionClosed)

// isHangUp reports whether reading or writing a connection has failed with err because the server
// has ended it.
func isHangUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
