package zkconn

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		err     error
		outcome Outcome
		reason  messages.Reason
	}{
		{zk.ErrNoServer, NotSent, messages.Reason_SESSION_LOST},
		{zk.ErrSessionExpired, NotSent, messages.Reason_SESSION_LOST},
		{ServerError(-127), NotSent, messages.Reason_SESSION_LOST},
		{zk.ErrSessionMoved, NotSent, messages.Reason_SESSION_LOST},
		{zk.ErrConnectionClosed, ConnectionLost, messages.Reason_SESSION_LOST},
		{zk.ErrClosing, ConnectionLost, messages.Reason_SESSION_LOST},
		{&net.OpError{Op: "write", Err: os.ErrDeadlineExceeded}, ConnectionLost, messages.Reason_SESSION_LOST},
		{io.ErrClosedPipe, ConnectionLost, messages.Reason_SESSION_LOST},
		{zk.ErrAPIError, Inconclusive, messages.Reason_UNAVAILABLE},
		{ServerError(-5), Inconclusive, messages.Reason_UNAVAILABLE},
		{ServerError(-6), Refused, messages.Reason_UNAVAILABLE},
		{ServerError(-125), Refused, messages.Reason_UNAVAILABLE},
		{fmt.Errorf("make directory /a: %w", ServerError(-6)), Refused, messages.Reason_UNAVAILABLE},
		{fmt.Errorf("make directory /a: %w", zk.ErrNoAuth), Refused, messages.Reason_NO_AUTH},
		{zk.ErrBadArguments, Refused, messages.Reason_INVALID},
		{zk.ErrNoChildrenForEphemerals, Refused, messages.Reason_INVALID},
		{zk.ErrNodeExists, Refused, messages.Reason_SEQUENCE_EXHAUSTED},
		{zk.ErrNotEmpty, Refused, messages.Reason_UNAVAILABLE},
	} {
		if o, r := Classify(c.err); o != c.outcome || r != c.reason {
			t.Errorf("%v: %v, %v; want %v, %v", c.err, o, r, c.outcome, c.reason)
		}
	}
}

func TestFirstFailedOp(t *testing.T) {
	behind := ServerError(-2)
	for _, c := range []struct {
		results []zk.MultiResponse
		at      int
		err     error
	}{
		{nil, -1, nil},
		{[]zk.MultiResponse{{}, {Error: zk.ErrNoNode}, {Error: behind}}, 1, zk.ErrNoNode},
		{[]zk.MultiResponse{{Error: zk.ErrNoAuth}, {Error: behind}}, 0, zk.ErrNoAuth},
		{[]zk.MultiResponse{{Error: behind}, {Error: zk.ErrNoNode}}, -1, nil},
		{[]zk.MultiResponse{{Error: zk.ErrSessionExpired}, {Error: behind}}, -1, nil},
	} {
		if at, err := FirstFailedOp(c.results); at != c.at || err != c.err {
			t.Errorf("%v: %v, %v", c.results, at, err)
		}
	}
}

// MoreTelling keeps the error of the last attempt if the next attempt got no answer.
func TestMoreTelling(t *testing.T) {
	hangUp := &handshakeError{"handshake", "a:1", io.EOF}
	silent := &handshakeError{"handshake", "a:1", errNoZooKeeper}
	refused := &handshakeError{"TLS", "a:1", io.EOF}
	silentTLS := &handshakeError{"TLS", "a:1", fmt.Errorf("%w: %w", errNoTLS, context.DeadlineExceeded)}
	other := &handshakeError{"TLS", "b:1", errNoTLS}
	for _, c := range []struct{ last, err, want error }{
		{hangUp, silent, hangUp},
		{silent, hangUp, hangUp},
		{refused, silentTLS, refused},
		{silentTLS, refused, refused},
		{refused, other, other},
		{refused, silent, silent},
		{io.EOF, silentTLS, silentTLS},
	} {
		if got := MoreTelling(c.last, c.err); got != c.want {
			t.Errorf("%v, then %v: %v", c.last, c.err, got)
		}
	}
}
