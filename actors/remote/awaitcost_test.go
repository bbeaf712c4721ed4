package remote_test

import (
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// rawClient is the stream of a client whose frames the test makes.
type rawClient struct {
	up       chan *messages.ClientFrame
	down     chan *messages.ServerFrame
	sent     uint64
	received uint64
	refused  int
}

// Send implements remote.ServerTransport.
func (r *rawClient) Send(f *messages.ServerFrame) error { r.down <- f; return nil }

// Recv implements remote.ServerTransport.
func (r *rawClient) Recv() (*messages.ClientFrame, error) {
	f, more := <-r.up
	if !more {
		return nil, io.EOF
	}
	return f, nil
}

// send sends n messages for the requests from 1 on.
func (r *rawClient) send(n int, message func(request uint64) *messages.ClientMessage) {
	var all []*messages.ClientMessage
	for i := 1; i <= n; i++ {
		if all = append(all, message(uint64(i))); len(all) == 250 || i == n {
			r.up <- &messages.ClientFrame{First: r.sent + 1, Messages: all, Received: r.received}
			r.sent += uint64(len(all))
			all = nil
		}
	}
}

// take takes in what the server has sent within a time.
func (r *rawClient) take(within time.Duration) {
	timer := time.After(within)
	for {
		select {
		case f := <-r.down:
			r.received += uint64(len(f.Messages))
			for _, m := range f.Messages {
				if m.GetRefused() != nil {
					r.refused++
				}
			}
		case <-timer:
			return
		}
	}
}

// Cancels with await_node cost a lock server about as much as others: it does not look at all awaited nodes of a
// lock whenever one of them is gone.
func TestCostOfAwaitedNodes(t *testing.T) {
	const n = 4000
	bytes := map[bool]uint64{}
	for _, await := range []bool{false, true} {
		zktest.Bubble(t, func(t *testing.T) {
			w := newWorld(t, 1, "server")
			w.startServer("server")
			r := &rawClient{up: make(chan *messages.ClientFrame, 100), down: make(chan *messages.ServerFrame, 10*n)}
			ended := make(chan error, 1)
			go func() { ended <- w.servers[0].server.Connect(r, "raw") }()
			r.up <- &messages.ClientFrame{Hello: &messages.Hello{Version: 1}, Renew: &messages.Renew{Number: 1}}
			r.send(n, func(request uint64) *messages.ClientMessage {
				return &messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{
					Path: "/a", Lock: &messages.LockSpec{}, Acquire: &messages.Acquire{RequestId: request}}}}
			})
			r.take(time.Second)
			if nodes := len(w.zk.Nodes(t, "/a")); nodes != n {
				t.Errorf("%d nodes", nodes)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r.send(n, func(request uint64) *messages.ClientMessage {
				return &messages.ClientMessage{What: &messages.ClientMessage_Cancel{Cancel: &messages.Cancel{RequestId: request, AwaitNode: await}}}
			})
			r.take(time.Second)
			runtime.ReadMemStats(&after)
			bytes[await] = after.TotalAlloc - before.TotalAlloc
			if nodes := w.zk.Nodes(t, "/"); await && r.refused != n || len(nodes) > 2 {
				t.Errorf("%d requests are refused, and the nodes %v are left", r.refused, nodes)
			}
			r.up <- &messages.ClientFrame{Bye: true, Received: r.received}
			close(r.up)
			r.take(time.Second)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			w.closeAll()
		})
	}
	if bytes[true] > 4*bytes[false] {
		t.Errorf("%d cancels take %d bytes, and with await_node %d", n, bytes[false], bytes[true])
	}
}

var _ remote.ServerTransport = (*rawClient)(nil)
