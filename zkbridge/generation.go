package zkbridge

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// A session has one generation. The bridge reads and watches the generation's node before it sends
// the first request of a session, and ends the session when the node changes: the next session has
// the new generation.
//
// The bridge answers no transaction after the change with the former generation. Over one
// connection ZooKeeper sends the event of the watch before the answer to any later transaction.
// The watch goes with its connection. So the bridge reads the node again over each new connection
// before it sends anything else over it, and the answer to that comes first. (A watch that is set
// again, as other watches are, would not do: by its zxid the server would miss a change in an
// ensemble that came back from a backup.)

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

// GenerationACL returns the ACL of the generation's node and of its directory: the ACL of [Config],
// and the right to READ for all.
func (b *Bridge) GenerationACL() []zk.ACL {
	return zkconn.WithPublicRead(b.cfg.ACL)
}

// generationPause is how long the bridge waits before it reads a node again that it cannot use.
const generationPause = 10 * time.Second

// errGenerationUnread is the noGeneration of an epoch that has not read the node.
var errGenerationUnread = errors.New("the generation is not read yet")

// readGeneration reads and watches the generation's node over the present connection. If there is
// none, or it is lost, the next one begins with a read.
func (ep *epoch) readGeneration() {
	if conn := ep.conn.Active(); conn != nil {
		ep.readGenerationOver(conn)
	}
}

func (ep *epoch) readGenerationOver(conn *zkconn.Conn) {
	ep.client.ReadAndWatch(conn, GenerationPath, func(found zkconn.Content, err error) {
		ep.Post(func() { ep.onGenerationRead(conn, found, err) })
	})
}

func (ep *epoch) onGenerationRead(conn *zkconn.Conn, found zkconn.Content, err error) {
	if ep.over || ep.rejoining != nil && ep.rejoining.Conn != conn || ep.readsGenerationAgain(conn, err) {
		return
	}
	defer ep.joined()
	n := NodeView{Exists: !zkconn.IsMissing(err), Stat: found.Stat, Data: found.Data}
	var value uint64
	switch {
	case !n.Exists:
		err = nil
	case err == nil:
		value, err = ParseGeneration(n.Data)
	}
	switch {
	case ep.noGeneration == nil:
		if err != nil || value != ep.writer.Generation {
			ep.endForGeneration()
		}
	case err != nil:
		ep.setNoGeneration(zkconn.ExplainRight(ep.client, err, "READ", GenerationPath))
	case ep.cfg.Former.mustRaise(value, ep.firstZxid):
		ep.raiseGeneration(n, value)
	default:
		ep.noGeneration, ep.writer.Generation = nil, value
		ep.owner.NoteTokens(nil)
		ep.setReady()
	}
}

// maxMisreads is how many reads of the generation in a row may fail without an answer that says what
// there is, but for those that are throttled.
const maxMisreads = 5

// readsGenerationAgain reports whether the error of a read is such that the generation is read again, over
// the same connection unless that is lost, or is to be. A session that has a generation, and may have
// locks, does not end for one refusal.
func (ep *epoch) readsGenerationAgain(conn *zkconn.Conn, err error) bool {
	outcome, _ := zkconn.Classify(err)
	if outcome == zkconn.Refused && ep.noGeneration == nil {
		outcome = zkconn.Inconclusive
	}
	switch {
	case err == nil || zkconn.IsMissing(err) || outcome == zkconn.Refused:
		ep.misreads = 0
		return false
	case zkconn.IsThrottled(err):
		ep.owner.NoteConnectError(fmt.Errorf("%s answers, and throttles requests: %w", conn.Server, err))
		ep.cfg.Log.Warn("the server throttles the read of the generation, which is tried again", "epoch", ep.number, "server", conn.Server,
			"error", err, "do", "raise request_throttle_max_requests, or reduce the load of the servers")
	case outcome == zkconn.Inconclusive && ep.misreads < maxMisreads:
		ep.misreads++
	case outcome == zkconn.Inconclusive:
		return false
	default:
		go conn.Close() // unless it is lost
		return true
	}
	ep.AfterFunc(retryPause, func() {
		if conn == ep.conn.Active() || ep.rejoining != nil && conn == ep.rejoining.Conn {
			ep.readGenerationOver(conn)
		}
	})
	return true
}

// onGenerationChanged handles the event of the watch.
func (ep *epoch) onGenerationChanged() {
	if ep.noGeneration == nil {
		ep.endForGeneration()
		return
	}
	ep.readGeneration()
}

// endForGeneration ends the session: its generation is in force no longer.
func (ep *epoch) endForGeneration() {
	ep.cfg.Log.Warn("the generation of tokens has changed: the session ends, and with it the locks of all holders", "epoch", ep.number,
		"node", GenerationPath, "was", ep.writer.Generation, "do", "nothing if the generation was raised: each process loses its locks once")
	ep.owner.OnSessionEvent(sessionGivenUp, "the generation of tokens has changed")
}

// setNoGeneration has creates fail until the generation can be read, and is high enough.
func (ep *epoch) setNoGeneration(err error) {
	if ep.noGeneration == errGenerationUnread {
		ep.cfg.Log.Error("the generation of tokens is not known: no lock can be granted", "node", GenerationPath, "error", err,
			"do", "grant READ and WRITE on the node, or write a number to it that is greater than any before")
	}
	ep.refuseCreates(err, ep.readGeneration)
}

// refuseCreates has creates fail because of err. It calls again after a pause, which must read the
// generation at last.
func (ep *epoch) refuseCreates(err error, again func()) {
	ep.noGeneration = err
	ep.owner.NoteTokens(&messages.Failed{Epoch: ep.number, Reason: requests.ReasonOf(err), Detail: err.Error()})
	if !ep.generationDue {
		ep.generationDue = true
		ep.AfterFunc(generationPause, func() {
			ep.generationDue = false
			again()
		})
	}
	ep.setReady()
}

// create has the writer create contenders when the session is ready, or answers why they have no
// token.
func (ep *epoch) create(g *writer.Group) {
	switch {
	case !ep.ready:
		ep.awaitingReady = append(ep.awaitingReady, func() { ep.create(g) })
	case ep.noGeneration != nil:
		ep.writer.Fail(g, requests.ReasonOf(ep.noGeneration), ep.noGeneration)
	default:
		ep.writer.Create(g)
	}
}
