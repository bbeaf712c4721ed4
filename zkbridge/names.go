package zkbridge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// names dials servers by name. net.Dialer takes the first address of a name that accepts a
// connection, whatever is behind it, and looks the name up within the time for connecting,
// which may be too short for the second name server. names begins with the next address at
// each attempt, goes on with a lookup beyond the attempt, and keeps the last addresses for
// when the name servers fail. All attempts of a bridge share it.
type names struct {
	lookup func(ctx context.Context, host string) ([]string, error)
	dialIP func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	hosts map[string]*resolved
}

// resolved is what is known of one name.
type resolved struct {
	addresses []string // as last looked up; empty if the name does not exist
	err       error    // of the last lookup
	next      int      // which of the addresses to begin with, modulo their number
	running   chan struct{}
}

const (
	// lookupTimeout bounds a lookup: name servers in turn have 5 s each, twice.
	lookupTimeout = 30 * time.Second
	// lookupPatience is how long an attempt waits for a lookup if there are addresses.
	lookupPatience = 500 * time.Millisecond
	// maxShare is how long an attempt waits for an address while there are others.
	maxShare = 2 * time.Second
)

func newNames() *names {
	return &names{lookup: net.DefaultResolver.LookupHost, dialIP: new(net.Dialer).DialContext, hosts: map[string]*resolved{}}
}

// dial connects to one of the addresses of a server until ctx ends. Its lookup may go on
// until life ends, on a goroutine that running counts.
func (n *names) dial(ctx, life context.Context, running *sync.WaitGroup, network, server string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return n.dialIP(ctx, network, server)
	}
	addresses, first, err := n.resolve(ctx, life, running, host)
	if err != nil {
		return nil, err
	}
	var failures []error
	for i := range addresses {
		k := (first + i) % len(addresses)
		conn, err := n.dialOne(ctx, network, net.JoinHostPort(addresses[k], port), len(addresses)-i)
		if err == nil {
			n.begin(host, k+1)
			return conn, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// dialOne leaves time for as many addresses as are left, this one among them.
func (n *names) dialOne(ctx context.Context, network, address string, left int) (net.Conn, error) {
	if end, limited := ctx.Deadline(); limited {
		var cancel context.CancelFunc
		share := time.Until(end)
		if left > 1 {
			share = min(share/time.Duration(left), maxShare)
		}
		ctx, cancel = context.WithTimeout(ctx, share)
		defer cancel()
	}
	return n.dialIP(ctx, network, address)
}

// begin has the next attempt begin with an address.
func (n *names) begin(host string, next int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host].next = next
}

// resolve returns the addresses of a host, and which of them to begin with.
func (n *names) resolve(ctx, life context.Context, running *sync.WaitGroup, host string) ([]string, int, error) {
	patience := ctx.Done()
	for {
		known, done := n.look(life, running, host)
		if known {
			soon, cancel := context.WithTimeout(ctx, lookupPatience)
			defer cancel()
			patience = soon.Done()
		}
		select {
		case <-done:
		case <-patience:
		}
		n.mu.Lock()
		h := n.hosts[host]
		addresses, next, err := h.addresses, h.next, h.err
		n.mu.Unlock()
		switch {
		case len(addresses) > 0:
			return addresses, next % len(addresses), nil
		case ctx.Err() != nil:
			return nil, 0, fmt.Errorf("lookup %s: the name servers have not answered yet: %w", host, context.Cause(ctx))
		case !errors.Is(err, context.Canceled):
			return nil, 0, err
		} // that lookup was one of a session that is over
	}
}

// look begins to look a host up if that is not under way. It reports whether there are
// addresses already, and returns a channel that is closed at the lookup's end.
func (n *names) look(life context.Context, running *sync.WaitGroup, host string) (known bool, done <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[host]
	if h == nil {
		h = &resolved{}
		n.hosts[host] = h
	}
	if h.running == nil {
		h.running = make(chan struct{})
		running.Go(func() { n.finish(life, h, host) })
	}
	return len(h.addresses) > 0, h.running
}

// finish looks a host up.
func (n *names) finish(life context.Context, h *resolved, host string) {
	ctx, cancel := context.WithTimeout(life, lookupTimeout)
	defer cancel()
	addresses, err := n.lookup(ctx, host)
	n.mu.Lock()
	defer n.mu.Unlock()
	var refused *net.DNSError
	if err == nil || errors.As(err, &refused) && refused.IsNotFound {
		h.addresses = addresses
	}
	if h.err = err; life.Err() != nil {
		h.err = context.Canceled
	}
	close(h.running)
	h.running = nil
}
