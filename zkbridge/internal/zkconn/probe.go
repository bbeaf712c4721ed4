package zkconn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
)

// A new session sends one request of each optional kind before anything is at stake in it. If the
// server hangs up, then or later, the requests that were unanswered and that the server has not
// answered before over this connection are suspects. Before the session goes on they are sent once
// more, one after the other, each in a session of its own: that tells which one is at fault.

// encodeProbe returns a request of a kind that changes nothing: the root exists.
func encodeProbe(k optionalKind) []byte {
	const root = "/"
	anyone := zk.WorldACL(zk.PermAll)
	switch k {
	case optContainer:
		return encodeCreate(opCreateContainer, root, NoData, anyone, zk.FlagContainer)
	case optContainerOp:
		return encodeMulti("", []Op{{Kind: OpContainer, Path: root, Data: NoData, ACL: anyone}}, true)
	case optCreate2:
		return encodeCreate(opCreate2, root, NoData, anyone, 0)
	case optMultiRead:
		return encodeMultiRead("", []DirectoryRead{{Path: root}})
	case optSetWatches:
		return append(newMessage(opSetWatches, OpBytes), make([]byte, 8+3*4)...) // no zxid, and three empty lists
	case optRemoveWatches:
		return encodeRemoveWatch(root) // of which there is none
	default: // optEphemerals
		return appendText(newMessage(opGetEphemerals, OpBytes), root)
	}
}

// noteProbe notes the error with which a server has answered a probe. Most errors show that the server
// knows the request.
func (cfg *Settings) noteProbe(k optionalKind, err error) {
	switch outcome, _ := Classify(err); {
	case k == optContainer && errors.Is(err, zk.ErrBadArguments): // as RaftKeeper
		cfg.noteUnknown(k, err)
	case errors.Is(err, ServerError(codeMarshalling)), errors.Is(err, ServerError(CodeUnimplemented)):
		cfg.noteUnknown(k, err)
	case err == nil || outcome == Refused:
		cfg.noteKnown(k)
	}
}

func (c zkClient) Probe() (wait func() error) {
	var all sync.WaitGroup
	var lost error // callbacks come one after the other
	for k := range (allKinds &^ kindSet(c.session.cfg.found.unknown.Load())).all {
		all.Add(1)
		c.session.send(encodeProbe(k), func(_ []byte, err error) {
			defer all.Done()
			if c.session.cfg.noteProbe(k, err); errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) {
				lost = err
			}
		})
	}
	return func() error {
		all.Wait()
		return lost
	}
}

// ProbeUnknown sends the requests to a server that another one, or an earlier version, has not known. It
// blocks until the server has answered, until ctx ends, or for ConnectTimeout.
func ProbeUnknown(ctx context.Context, cfg *Settings, server string) error {
	_, err := cfg.probe(ctx, server, kindSet(cfg.found.unknown.Load()))
	return err
}

// maxHangUps is how often a server hangs up on a probe before it counts as unknown: fewer may have other
// reasons.
const maxHangUps = 3

// probe finds out which of some kinds a server knows. With an error it returns those that are left: a far
// server may take several attempts.
func (cfg *Settings) probe(ctx context.Context, server string, left kindSet) (kindSet, error) {
	for left != 0 {
		hungUp := false
		err := inSession(ctx, cfg, server, 0, noPassword, func(w *Conn, _ int64) error {
			// A server, or a network, that fails at a request that all servers know tells nothing.
			if err := w.probe(encodeRead(opExists, "/", false)); IsTransient(err) {
				return err
			}
			for k := range left.all {
				switch err := w.probe(encodeProbe(k)); {
				case isHangUp(err) || errors.Is(err, errLeftOut):
					hungUp = true
					if cfg.found.hangUps[k].Add(1) < maxHangUps {
						return nil
					}
					cfg.found.hangUps[k].Store(0)
					left = left.without(k)
					cfg.noteUnknown(k, err)
					return nil
				case IsTransient(err):
					return err
				default:
					cfg.found.hangUps[k].Store(0)
					left = left.without(k)
					cfg.noteProbe(k, err)
				}
			}
			return w.closeSession()
		})
		if left != 0 && !hungUp {
			return left, cmp.Or(err, zk.ErrSessionExpired)
		}
	}
	return 0, nil
}

// probe sends a request, and a ping behind it, and returns the error of the answer.
func (c *Conn) probe(message []byte) error {
	const xid = 1
	binary.BigEndian.PutUint32(message, uint32(len(message)-lengthSize))
	binary.BigEndian.PutUint32(message[lengthSize:], xid)
	c.Conn.Write(slices.Concat(message, pingMessage)) // if it fails, what can be read shows why
	answer, err := c.readFrame()
	if err != nil {
		return err
	}
	if bytes.Equal(answer[lengthSize:lengthSize+xidSize], pingMessage[lengthSize:lengthSize+xidSize]) {
		return errLeftOut
	}
	if _, err := c.readFrame(); err != nil { // the answer to the ping
		return err
	}
	return errorOf(int32(binary.BigEndian.Uint32(answer[lengthSize+xidSize+8:])))
}
