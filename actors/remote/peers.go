package remote

import (
	"log/slog"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"
)

// source is where clients come from whose number is bounded together: an identity at one address.
type source struct{ name, address string }

func (p Peer) source() source { return source{p.Name, addressOf(p.Address)} }

// addressOf returns what the network address of one machine is known by: its IP address without the
// port. A machine has all addresses of an IPv6 network of 64 bits, mostly.
func addressOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap().WithZone(""); ip.Is6() {
		network, _ := ip.Prefix(64)
		return network.String()
	}
	return ip.String()
}

// keptFiles is how many files a server keeps back from its clients: for the connections to ZooKeeper,
// and what else the program has open.
const keptFiles = 32

// maxConnections returns how many connections a server with so many clients and open files may have, and
// how many of them one address may have. A client of ours has one connection, and two for a moment.
func maxConnections(maxClients, maxClientsPerPeer int, files uint64) (all, perAddress int) {
	all = maxClients + maxClients/4 + 16
	if most := max(files, keptFiles+2) - keptFiles; uint64(all) > most {
		all = int(most)
	}
	perAddress = min(maxClientsPerPeer+maxClientsPerPeer/4+16, all)
	if maxClientsPerPeer < maxClients {
		perAddress = min(perAddress, (all+1)/2) // some are left for others
	}
	return all, perAddress
}

// unlimitedFiles is the number of open files where the system does not bound them.
const unlimitedFiles = math.MaxInt32

// listener bounds the connections, from before their handshake on. It closes at once what is over the
// bounds.
type listener struct {
	net.Listener
	all, perAddress int
	refused         func(address string, all bool)

	mu        sync.Mutex
	open      int
	byAddress map[string]int
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := addressOf(c.RemoteAddr().String())
		l.mu.Lock()
		full, takesAll := l.open >= l.all, l.byAddress[address] >= l.perAddress
		if !full && !takesAll {
			l.open++
			l.byAddress[address]++
			l.mu.Unlock()
			return &boundedConn{Conn: c, closed: sync.OnceFunc(func() { l.ended(address) })}, nil
		}
		l.mu.Unlock()
		c.Close()
		l.refused(address, full)
	}
}

func (l *listener) ended(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.byAddress[address]--; l.byAddress[address] == 0 {
		delete(l.byAddress, address)
	}
}

// boundedConn is a connection that a listener has counted.
type boundedConn struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.closed()
	return err
}

// Serve is grpc.Server.Serve with bounds: MaxClients and the limit of open files bound all connections,
// and MaxClientsPerPeer bounds the connections of one address.
func (g *GRPCServer) Serve(l net.Listener) error {
	cfg := &g.server.cfg
	all, perAddress := maxConnections(cfg.MaxClients, cfg.MaxClientsPerPeer, openFiles())
	return g.Server.Serve(&listener{Listener: l, all: all, perAddress: perAddress, byAddress: map[string]int{}, refused: func(address string, full bool) {
		if full {
			g.server.counts.countRefusal(LimitConnections)
			g.server.warn("lock server refuses a connection: it has as many as it takes", "address", address, "connections", all,
				"do", "raise the limit of open files and MaxClients, or look at the clients")
			return
		}
		g.server.counts.countRefusal(LimitConnectionsPerAddress)
		g.server.warn("lock server refuses a connection: its address has as many as one may have", "address", address, "connections", perAddress,
			"do", "look at the clients at the address, or raise MaxClientsPerPeer and the limit of open files")
	}})
}

// linePause is the time between two lines of the log of one kind that clients can have a server write.
const linePause = 10 * time.Second

// logLimit bounds the lines of the log that clients can have a server write, by their texts.
type logLimit struct {
	mu     sync.Mutex
	before map[string]*lineCount
}

type lineCount struct {
	next    time.Duration // when the next line may be written
	leftOut int
}

// take reports whether a line may be written now, and how many were left out since the last one.
func (l *logLimit) take(text string, now time.Duration) (leftOut int, may bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.before == nil {
		l.before = map[string]*lineCount{}
	}
	c := l.before[text]
	switch {
	case c == nil:
		l.before[text] = &lineCount{next: now + linePause}
		return 0, true
	case now < c.next:
		c.leftOut++
		return 0, false
	}
	leftOut, c.leftOut, c.next = c.leftOut, 0, now+linePause
	return leftOut, true
}

// warn writes a line to the log, one of each text in 10 s at most. The next has how many were left out.
func (s *LockServer) warn(text string, args ...any) {
	leftOut, may := s.lines.take(text, s.manager.Session.Now())
	if !may {
		return
	}
	if leftOut > 0 {
		args = append(args, slog.Int("alike", leftOut))
	}
	s.log.Warn(text, args...)
}
