package zkconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
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
		{ServerError(-125), Refused, messages.Reason_LIMIT_EXCEEDED},
		{ServerError(-50), Inconclusive, messages.Reason_UNAVAILABLE}, // of no known version
		{ServerError(-200), Refused, messages.Reason_UNAVAILABLE},
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

// keeperExceptions are the codes of KeeperException in ZooKeeper 3.9.
const keeperExceptions = `SYSTEMERROR -1, RUNTIMEINCONSISTENCY -2, DATAINCONSISTENCY -3, CONNECTIONLOSS -4, MARSHALLINGERROR -5,
UNIMPLEMENTED -6, OPERATIONTIMEOUT -7, BADARGUMENTS -8, UNKNOWNSESSION -12, NEWCONFIGNOQUORUM -13, RECONFIGINPROGRESS -14, APIERROR -100,
NONODE -101, NOAUTH -102, BADVERSION -103, NOCHILDRENFOREPHEMERALS -108, NODEEXISTS -110, NOTEMPTY -111, SESSIONEXPIRED -112,
INVALIDCALLBACK -113, INVALIDACL -114, AUTHFAILED -115, SESSIONMOVED -118, NOTREADONLY -119, EPHEMERALONLOCALSESSION -120,
NOWATCHER -121, REQUESTTIMEOUT -122, RECONFIGDISABLED -123, SESSIONCLOSEDREQUIRESASLAUTH -124, QUOTAEXCEEDED -125, THROTTLEDOP -127`

// Each code of ZooKeeper has one entry, an error with a text, and a reason that users can ask for.
func TestServerCodes(t *testing.T) {
	known := map[string]bool{}
	for _, c := range serverCodes {
		known[fmt.Sprint(c.name, " ", c.code)] = true
		err := errorOf(c.code)
		if _, own := err.(ServerError); own != (c.meaning != "") || own && !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: %v", c.name, err)
		}
		if outcome, why := Classify(fmt.Errorf("make directory /a: %w", err)); outcome != c.outcome || why != c.reason {
			t.Errorf("%s: %v, %v", c.name, outcome, why)
		}
		if why := ReasonFor(err); why == messages.Reason_SESSION_LOST || why == 0 {
			t.Errorf("%s: %v", c.name, why)
		}
	}
	all := strings.Split(strings.ReplaceAll(keeperExceptions, "\n", " "), ", ")
	for _, code := range all {
		if !known[code] {
			t.Errorf("no entry for %s", code)
		}
	}
	if len(serverCodes) != len(all) || len(codesByNumber) != len(all) {
		t.Errorf("%d entries with %d numbers for %d codes", len(serverCodes), len(codesByNumber), len(all))
	}
	if err := errorOf(0); err != nil {
		t.Error(err)
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
	silent := &handshakeError{"handshake", "a:1", errSilent}
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

// A server that hangs up at once is named as one that hangs up, although the dial has failed.
func TestExplainDial(t *testing.T) {
	for _, c := range []struct {
		tls  *tls.Config
		err  error
		want string
	}{
		{nil, syscall.EPIPE, "accepts connections and hangs up"},
		{nil, syscall.ECONNRESET, "accepts connections and hangs up"},
		{&tls.Config{}, syscall.EPIPE, "the server hangs up, as it does on a port without TLS"},
		{nil, syscall.ECONNREFUSED, "check that ZooKeeper runs there"},
		{nil, &net.DNSError{IsNotFound: true}, "check the name of the server"},
		{nil, syscall.EHOSTUNREACH, syscall.EHOSTUNREACH.Error()},
	} {
		cfg := Settings{TLS: c.tls, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: c.err}
		}}
		_, _, err := cfg.open(t.Context(), t.Context(), nil, "tcp", "zk1:2181")
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.err, err)
		}
	}
}
