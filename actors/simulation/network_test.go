package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// network connects clients with the embedded server. Written bytes wait in a queue until the event
// loop delivers them: in order, after a delay that the seed decides.
type network struct {
	loop     *eventLoop
	hosts    []*host       // of all clients
	accepted chan net.Conn // what the server's listener returns
	closed   chan struct{}
	away     atomic.Bool // all servers are away
	servers  []*ensembleServer

	mu    sync.Mutex
	peers map[string]*peer // lock servers that take streams, by address

	sharedName bool // each name of a lock server leads to all in turn
}

func newNetwork(loop *eventLoop, servers int) *network {
	n := &network{loop: loop, accepted: make(chan net.Conn, 64), closed: make(chan struct{}), peers: map[string]*peer{}}
	for i := range servers {
		n.servers = append(n.servers, &ensembleServer{address: address(fmt.Sprint("server", i))})
	}
	return n
}

// Accept, Close and Addr implement net.Listener for the server.

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.accepted:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error   { close(n.closed); return nil }
func (n *network) Addr() net.Addr { return address("server") }

type address string

func (address) Network() string  { return "simulated" }
func (a address) String() string { return string(a) }

// host is a client's side of the network.
type host struct {
	name    string
	network *network
	seed    uint64

	plain    bool          // a client of go-zookeeper, which dials the first server only
	maxDelay time.Duration // the greatest delay without faults

	mu               sync.Mutex
	dialed           uint64
	connections      []*connection // the open ones
	extraDelay       time.Duration // added to each delay
	extraAnswerDelay time.Duration // added to the delay of messages from the server
	mute             bool          // nothing is delivered to the server
	deaf             bool          // nothing is delivered to the client
	dead             bool          // it dials no more
	blocked          bool          // nothing is delivered in either direction
}

// newHost adds a client's side.
func (n *network) newHost(name string, seed uint64) *host {
	h := &host{name: name, network: n, seed: seed, maxDelay: nearDelay}
	n.hosts = append(n.hosts, h)
	return h
}

// nearDelay is the greatest delay of a client that is near the server.
const nearDelay = time.Millisecond

// dial has the type of actors.Config.Dial.
func (h *host) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.dialed++
	n := h.dialed
	dead := h.dead
	h.mu.Unlock()
	to := h.server(n)
	if dead || h.network.away.Load() || to.away.Load() {
		h.network.loop.record("%s.%d is refused", h.name, n)
		return nil, &net.OpError{Op: "dial", Net: "simulated", Err: syscall.ECONNREFUSED}
	}
	c := h.open(n)
	c.server = to
	server := c.serverEnd()
	server.local = to.address
	h.network.accepted <- server
	return c.clientEnd(), nil
}

// open makes the n-th connection of the host.
func (h *host) open(n uint64) *connection {
	c := &connection{host: h, number: n, name: fmt.Sprintf("%s.%d", h.name, n)}
	for i, to := range []string{"server", "client"} {
		p := &c.pipes[i]
		p.conn, p.to = c, to
		p.rand = rand.New(rand.NewPCG(h.seed, n<<1|uint64(i)))
		p.changed = sync.NewCond(&p.mu)
	}
	h.add(c)
	return c
}

// add has the host's faults affect a connection.
func (h *host) add(c *connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.connections = append(h.connections, c)
}

func (c *connection) clientEnd() *endpoint {
	return &endpoint{conn: c, in: &c.pipes[1], out: &c.pipes[0]}
}

func (c *connection) serverEnd() *endpoint {
	return &endpoint{conn: c, in: &c.pipes[0], out: &c.pipes[1]}
}

// hash returns the hash of the sent bytes. It returns 0 for a plain client: go-zookeeper lists the
// watches that it sets again in the order of a map.
func (h *host) hash(b []byte) uint64 {
	if h.plain {
		return 0
	}
	return hash(b)
}

// cut breaks all connections of the host. Bytes in flight are lost.
func (h *host) cut() {
	for _, c := range h.takeConnections() {
		c.cut()
	}
}

func (h *host) takeConnections() []*connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	connections := h.connections
	h.connections = nil
	return connections
}

// setExtraDelay adds to the delay of each message.
func (h *host) setExtraDelay(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.extraDelay = d
}

// setExtraAnswerDelay adds to the delay of messages from the server.
func (h *host) setExtraAnswerDelay(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.extraAnswerDelay = d
}

// muteRequests stops the delivery of messages to the server. Earlier messages from the server still
// arrive.
func (h *host) muteRequests() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mute = true
}

// stopDialing makes all later dials fail.
func (h *host) stopDialing() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dead = true
}

// block stops all deliveries, or lets them continue.
func (h *host) block(blocked bool) {
	h.mu.Lock()
	h.blocked, h.mute, h.deaf = blocked, false, false
	connections := append([]*connection(nil), h.connections...)
	h.mu.Unlock()
	if blocked {
		return
	}
	for _, c := range connections {
		for i := range c.pipes {
			c.pipes[i].schedule()
		}
	}
}

func (h *host) delay(r *rand.Rand, to string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	extra := h.extraDelay
	if to == "client" {
		extra += h.extraAnswerDelay
	}
	return extra + h.minDelay() + time.Duration(r.Int64N(int64(h.maxDelay)*9/10))
}

// minDelay returns the shortest delay.
func (h *host) minDelay() time.Duration { return h.maxDelay / 10 }

func (h *host) isBlocked(to string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.blocked || h.mute && to == "server" || h.deaf && to == "client"
}

// connection is two pipes: to the server and to the client.
type connection struct {
	host   *host
	server *ensembleServer
	number uint64
	name   string
	pipes  [2]pipe
	stream *stream // nil for a connection to ZooKeeper
}

func (c *connection) isBlocked(to string) bool {
	return c.host.isBlocked(to) || c.stream != nil && c.stream.isBlocked(to)
}

func (c *connection) delay(r *rand.Rand, to string) time.Duration {
	d := c.host.delay(r, to)
	if c.stream != nil {
		d += c.stream.extraDelay(to)
	}
	return d
}

func (c *connection) cut() {
	if c.stream != nil {
		c.stream.link.ended.Store(true)
	}
	for i := range c.pipes {
		c.pipes[i].fail(syscall.ECONNRESET)
	}
}
