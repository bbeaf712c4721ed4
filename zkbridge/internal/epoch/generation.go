package epoch

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/generation"
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
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

// GenerationPause is how long the bridge waits before it reads a node again that it cannot use.
const GenerationPause = 10 * time.Second

// errGenerationUnread is the noGeneration of an epoch that has not read the node.
var errGenerationUnread = errors.New("the generation is not read yet")

// readGeneration reads and watches the generation's node over the present connection. If there is
// none, or it is lost, the next one begins with a read.
func (ep *Epoch) readGeneration() {
	if conn := ep.Conn.Active(); conn != nil {
		ep.readGenerationOver(conn)
	}
}

func (ep *Epoch) readGenerationOver(conn *zkconn.Conn) {
	ep.client.ReadAndWatch(conn, generation.Path, func(found zkconn.Content, err error) {
		ep.Post(func() { ep.onGenerationRead(conn, found, err) })
	})
}

func (ep *Epoch) onGenerationRead(conn *zkconn.Conn, found zkconn.Content, err error) {
	if ep.over || ep.rejoining != nil && ep.rejoining.Conn != conn || ep.readsGenerationAgain(conn, err) {
		return
	}
	defer ep.joined()
	exists := !zkconn.IsMissing(err)
	var value uint64
	switch {
	case !exists:
		err = nil
	case err == nil:
		value, err = generation.Parse(found.Data)
	}
	switch {
	case ep.noGeneration == nil:
		if err != nil || value != ep.Writer.Generation {
			ep.endForGeneration()
		}
	case err != nil:
		ep.setNoGeneration(zkconn.ExplainRight(ep.client, err, "READ", generation.Path))
	case ep.cfg.Former.MustRaise(value, ep.firstZxid):
		ep.raiseGeneration(exists, found.Stat.Version, value)
	default:
		ep.noGeneration, ep.Writer.Generation = nil, value
		ep.owner.NoteTokens(nil)
		ep.setReady()
	}
}

// MaxMisreads is how many reads of the generation in a row may fail without an answer that says what
// there is, but for those that are throttled.
const MaxMisreads = 5

// readsGenerationAgain reports whether the error of a read is such that the generation is read again, over
// the same connection unless that is lost, or is to be. A session that has a generation, and may have
// locks, does not end for one refusal.
func (ep *Epoch) readsGenerationAgain(conn *zkconn.Conn, err error) bool {
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
		ep.cfg.Log.Warn("the server throttles the read of the generation, which is tried again", "epoch", ep.Number, "server", conn.Server,
			"error", err, "do", "raise request_throttle_max_requests, or reduce the load of the servers")
	case outcome == zkconn.Inconclusive && ep.misreads < MaxMisreads:
		ep.misreads++
	case outcome == zkconn.Inconclusive:
		return false
	default:
		go conn.Close() // unless it is lost
		return true
	}
	ep.AfterFunc(RetryPause, func() {
		if conn == ep.Conn.Active() || ep.rejoining != nil && conn == ep.rejoining.Conn {
			ep.readGenerationOver(conn)
		}
	})
	return true
}

// onGenerationChanged handles the event of the watch.
func (ep *Epoch) onGenerationChanged() {
	if ep.noGeneration == nil {
		ep.endForGeneration()
		return
	}
	ep.readGeneration()
}

// endForGeneration ends the session: its generation is in force no longer.
func (ep *Epoch) endForGeneration() {
	ep.cfg.Log.Warn("the generation of tokens has changed: the session ends, and with it the locks of all holders", "epoch", ep.Number,
		"node", generation.Path, "was", ep.Writer.Generation, "do", "nothing if the generation was raised: each process loses its locks once")
	ep.owner.OnSessionEvent(GivenUp, "the generation of tokens has changed")
}

// setNoGeneration has creates fail until the generation can be read, and is high enough.
func (ep *Epoch) setNoGeneration(err error) {
	if ep.noGeneration == errGenerationUnread {
		ep.cfg.Log.Error("the generation of tokens is not known: no lock can be granted", "node", generation.Path, "error", err,
			"do", "grant READ and WRITE on the node, or write a number to it that is greater than any before")
	}
	ep.refuseCreates(err, ep.readGeneration)
}

// refuseCreates has creates fail because of err. It calls again after a pause, which must read the
// generation at last.
func (ep *Epoch) refuseCreates(err error, again func()) {
	ep.noGeneration = err
	ep.owner.NoteTokens(&messages.Failed{Epoch: ep.Number, Reason: requests.ReasonOf(err), Detail: err.Error()})
	if !ep.generationDue {
		ep.generationDue = true
		ep.AfterFunc(GenerationPause, func() {
			ep.generationDue = false
			again()
		})
	}
	ep.setReady()
}

// Tokens returns the generation of a session that is ready, or why it has no tokens.
func (ep *Epoch) Tokens() (uint64, error) { return ep.Writer.Generation, ep.noGeneration }

// noteFirstZxid notes the zxid of the session's first transaction.
func (ep *Epoch) noteFirstZxid(zxid int64) {
	ep.firstZxid = zxid
	if former := ep.cfg.Former; former.IsHistoryLost(zxid) {
		ep.cfg.Log.Error("ZooKeeper has lost transactions: it came back empty, or from a backup", "epoch", ep.Number,
			"zxid", fmt.Sprintf("%#x", zxid), "seen", fmt.Sprintf("%#x", former.Zxid),
			"do", "find out what became of the ensemble's data")
	}
}

// raiseGeneration writes a generation to the node, which has a value and exists or not, and
// reads the node again.
func (ep *Epoch) raiseGeneration(exists bool, version int32, value uint64) {
	if ep.raising {
		return
	}
	why := errors.New("ZooKeeper has lost transactions")
	if former := ep.cfg.Former.Generation; value < former {
		why = fmt.Errorf("%s went back from %d to %d", generation.Path, former, value)
	}
	raised, err := generation.Next(max(value, ep.cfg.Former.Generation))
	if err != nil {
		ep.setNoGeneration(notRaised(why, err))
		return
	}
	ep.raising = true
	op := generation.Write(raised, exists, version, ep.cfg.ACL)
	ep.jobs.Start.AddBlocking(func() func() {
		results, err := MultiWithin(ep.client, generation.Directory, op)
		if _, cause := zkconn.FirstFailedOp(results); cause != nil {
			err = zkconn.ExplainRight(ep.client, cause, op.Kind.Right, op.Path)
		}
		return func() { ep.onGenerationRaised(raised, why, err) }
	})
}

// onGenerationRaised handles the result of raiseGeneration. why is why the generation had to be
// raised.
func (ep *Epoch) onGenerationRaised(value uint64, why, err error) {
	ep.raising = false
	switch {
	case err == nil:
		ep.cfg.Log.Warn("the generation of tokens is raised", "generation", value, "why", why,
			"do", "nothing: tokens are greater than all before again")
		ep.readGeneration()
	case zkconn.IsTransient(err):
		ep.RetryLater(ep.readGeneration)
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode):
		ep.readGeneration() // another process has written the node
	default:
		ep.setNoGeneration(notRaised(why, err))
	}
}

func notRaised(why, err error) error {
	return fmt.Errorf("%w, and the generation is not raised: %w", why, err)
}
