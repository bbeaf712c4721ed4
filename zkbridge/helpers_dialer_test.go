package zkbridge

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// dialFunc is a Dial of Config.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// testDialer is the network between one bridge and the servers. It counts the requests that the
// bridge sends, by type, and can hold back replies.
type testDialer struct {
	dial      dialFunc             // net.Dialer's if it is nil
	socket    bool                 // the connections are sockets for the bridge, which writes to them without a queue
	onMessage func(message []byte) // called before a message is sent, unless nil; it may change the message

	mu      sync.Mutex
	address string   // the one dialed last
	conn    net.Conn // the newest connection
	counts  map[embedded.Op]int
	writes  int // calls of Write
	// Of the transactions whose replies wait, in the order in which they are sent.
	held []chan struct{}
	xids []int32 // of those of them that were sent
}

func (d *testDialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dial := d.dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	d.mu.Lock()
	d.address = address
	d.mu.Unlock()
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.conn = conn
	d.mu.Unlock()
	c := &dialedConn{Conn: conn, dialer: d}
	if d.socket {
		return socketConn{c}, nil
	}
	return c, nil
}

// lastAddress returns the address that was dialed last.
func (d *testDialer) lastAddress() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.address
}

// cut closes the newest connection.
func (d *testDialer) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn.Close()
}

// waitSent waits until n requests of a type were sent since take.
func (d *testDialer) waitSent(t *testing.T, op embedded.Op, n int) {
	t.Helper()
	zktest.Eventually(t, timeLimit, func() bool { return d.sent(op) == n }, "%d requests %v were sent", n, op)
}

// sent returns how many requests of a type were sent since take.
func (d *testDialer) sent(op embedded.Op) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[op]
}

// take returns the counts since its last call, without pings.
func (d *testDialer) take() map[embedded.Op]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	counts := d.counts
	d.counts, d.writes = nil, 0
	return counts
}

// written returns how often the bridge has written to a connection since take.
func (d *testDialer) written() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes
}

// holdReplies holds back the replies to the next n transactions, with all that follows them on
// their connection, and counts requests from now on.
func (d *testDialer) holdReplies(n int) {
	d.take()
	d.mu.Lock()
	defer d.mu.Unlock()
	for range n {
		d.held = append(d.held, make(chan struct{}))
	}
}

// passReply delivers the i-th reply that is held back, counted from 0.
func (d *testDialer) passReply(i int) { close(d.held[i]) }

func (d *testDialer) countRequest(message []byte) {
	op := embedded.Op(int32(binary.BigEndian.Uint32(message[8:])))
	d.mu.Lock()
	defer d.mu.Unlock()
	if op == embedded.OpPing {
		return
	}
	if d.counts == nil {
		d.counts = map[embedded.Op]int{}
	}
	d.counts[op]++
	if op == embedded.OpMulti && len(d.xids) < len(d.held) {
		d.xids = append(d.xids, int32(binary.BigEndian.Uint32(message[lengthSize:])))
	}
}

// waitForPass blocks as long as the reply to a request is held back.
func (d *testDialer) waitForPass(reply []byte) {
	xid := int32(binary.BigEndian.Uint32(reply[lengthSize:]))
	d.mu.Lock()
	var pass chan struct{}
	if i := slices.Index(d.xids, xid); i >= 0 {
		pass = d.held[i]
	}
	d.mu.Unlock()
	if pass != nil {
		<-pass
	}
}

// dialedConn is a connection of a testDialer. The first message of either side is the handshake.
type dialedConn struct {
	net.Conn
	dialer *testDialer

	connectSent, connectRead bool
	unread                   []byte // read from Conn
	whole                    int    // bytes of unread that may be delivered: whole messages
}

// Write takes one or several messages.
func (c *dialedConn) Write(b []byte) (int, error) {
	b = bytes.Clone(b)
	for rest := b; len(rest) > 0; {
		n := messageSize(rest)
		if c.dialer.onMessage != nil {
			c.dialer.onMessage(rest[:n])
		}
		if c.connectSent {
			c.dialer.countRequest(rest[:n])
		}
		c.connectSent = true
		rest = rest[n:]
	}
	c.dialer.mu.Lock()
	c.dialer.writes++
	c.dialer.mu.Unlock()
	return c.Conn.Write(b)
}

// Read returns bytes of one message.
func (c *dialedConn) Read(b []byte) (int, error) {
	for c.whole == 0 {
		if len(c.unread) >= lengthSize && len(c.unread) >= messageSize(c.unread) {
			c.whole = messageSize(c.unread)
			if c.connectRead {
				c.dialer.waitForPass(c.unread)
			}
			c.connectRead = true
			continue
		}
		chunk := make([]byte, 4096)
		n, err := c.Conn.Read(chunk)
		if c.unread = append(c.unread, chunk[:n]...); err != nil && n == 0 {
			return 0, err
		}
	}
	n := copy(b, c.unread[:c.whole])
	c.unread, c.whole = c.unread[n:], c.whole-n
	return n, nil
}

// lengthSize is the size of the length before each message.
const lengthSize = 4

// messageSize returns the size of the first message in b, with its length.
func messageSize(b []byte) int { return lengthSize + int(binary.BigEndian.Uint32(b)) }

// socketConn is a dialedConn with a method by which the bridge knows a socket.
type socketConn struct{ *dialedConn }

func (c socketConn) SetWriteBuffer(bytes int) error {
	return c.Conn.(*net.TCPConn).SetWriteBuffer(bytes)
}

// pipeDialer returns a Dial to a server in this process that runs serve for each connection.
func pipeDialer(serve func(net.Conn)) dialFunc {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			serve(server)
		}()
		return client, nil
	}
}
