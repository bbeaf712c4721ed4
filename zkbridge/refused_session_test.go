package zkbridge

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The bridge tries again after a server that refuses a session in the handshake.
func TestSessionRefused(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		sessionIDs := make(chan int64, 10)
		b := open(t, Config{Servers: "handshakeServer:1", SessionTimeout: time.Second, Dial: handshakeServer(t, sessionIDs)})
		u := newUser(t, b)
		u.subscribe()
		sessionIDs <- 0
		sessionIDs <- 0
		sessionIDs <- 77
		u.waitState(messages.SessionState_CONNECTED)
		if b.Session().Epoch != 3 || b.Session().ID != 77 {
			t.Errorf("%+v", b.Session())
		}
	})
}

// The bridge loses its session if a server answers with another one.
func TestForeignSession(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		sessionIDs := make(chan int64, 10)
		b := open(t, Config{Servers: "handshakeServer:1", SessionTimeout: 10 * time.Second, Dial: handshakeServer(t, sessionIDs)})
		u := newUser(t, b)
		u.subscribe()
		sessionIDs <- 77
		u.waitState(messages.SessionState_CONNECTED)
		sessionIDs <- 78
		if m := u.waitState(messages.SessionState_LOST); !strings.Contains(m.GetDetail(), "0x4e instead") {
			t.Errorf("%v", m)
		}
		sessionIDs <- 79
		if m := u.waitState(messages.SessionState_CONNECTED); m.GetEpoch() != 2 || m.GetSessionId() != 79 {
			t.Errorf("%v", m)
		}
	})
}

// handshakeServer returns a Dial to a server that answers the handshake with the next session id
// from sessionIDs, and grants the timeout that the client asks for. After that it answers nothing.
// It keeps each connection until the test ends, so that the client gives it up.
func handshakeServer(t *testing.T, sessionIDs <-chan int64) func(context.Context, string, string) (net.Conn, error) {
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	return pipeDialer(func(conn net.Conn) {
		request := make([]byte, 256) // more than the connect request, which is written in one piece
		if _, err := io.ReadAtLeast(conn, request, 48); err != nil {
			return
		}
		var id int64
		select {
		case id = <-sessionIDs:
		case <-stop:
			return
		}
		conn.Write(connectReply(int32(binary.BigEndian.Uint32(request[16:])), id))
		go io.Copy(io.Discard, conn)
		<-stop
	})
}

// A request does not fail because the reply to its transaction names the first operation although
// the session has ended.
func TestSessionEndsBeforeTransaction(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	var fail atomic.Bool
	failed := make(chan int, 1000)
	u := userOfFaulty(t, Config{Servers: s.Addr()}, &faultyClient{multi: func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
		if !fail.Load() {
			return send()
		}
		failed <- len(ops)
		results := make([]zk.MultiResponse, len(ops))
		results[0].Error = zk.ErrSessionExpired
		return results, zk.ErrSessionExpired
	}})
	dir := s.Path(t)
	u.created(dir, "n-")
	fail.Store(true)
	u.create(dir, "n-")
	<-failed
	u.bridge.Ref().SendTransact(&messages.Transact{Id: u.id(), Epoch: u.epoch(), Ops: []*messages.Op{makeOp(dir+"/m", "")}}, u)
	for <-failed != 1 { // the create is tried again
	}
	s.Expire(t, u.bridge.Session().ID)
	for range 2 {
		if m := next[*messages.Failed](u); m.GetReason() == messages.Reason_UNAVAILABLE {
			t.Errorf("%v", m)
		}
	}
}

// connectReply returns the reply to a handshake, with a password of 16 bytes.
func connectReply(timeout int32, session int64) []byte {
	const size = 37
	b := make([]byte, lengthSize+size)
	for i, field := range []int32{size, 0, timeout, int32(session >> 32), int32(session), 16} {
		binary.BigEndian.PutUint32(b[4*i:], uint32(field))
	}
	return b
}
