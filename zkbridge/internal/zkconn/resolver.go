package zkconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// resolver dials servers by name. net.Dialer takes the first address of a name that accepts a
// connection, whatever is behind it, and looks the name up within the time for connecting, which
// may be too short for the second name server. A Resolver begins with the next address at each
// attempt, goes on with a lookup beyond the attempt, and keeps the last addresses for the time when
// the name servers fail. All attempts of a bridge share it.
type Resolver struct {
	Lookup func(ctx context.Context, host string) ([]string, error)
	DialIP func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	hosts map[string]*resolvedHost
}

// resolvedHost holds the addresses of one name.
type resolvedHost struct {
	addresses []string      // as last looked up; empty if the name does not exist
	err       error         // of the last lookup
	next      int           // index of the address to begin with, modulo their number
	running   chan struct{} // closed at the end of the present lookup, nil without one
}

const (
	// lookupTimeout bounds a lookup: name servers in turn have 5 s each, twice.
	lookupTimeout = 30 * time.Second
	// maxLookupWait is how long an attempt waits for a lookup if there are addresses.
	maxLookupWait = 500 * time.Millisecond
	// maxAddressWait is how long an attempt waits for an address while there are others.
	maxAddressWait = 2 * time.Second
)

func NewResolver() *Resolver {
	return &Resolver{Lookup: net.DefaultResolver.LookupHost, DialIP: new(net.Dialer).DialContext, hosts: map[string]*resolvedHost{}}
}

// dial connects to one of the addresses of a server until ctx ends. Its lookup may go on
// until life ends, on a goroutine that running counts.
func (r *Resolver) dial(ctx, life context.Context, running *sync.WaitGroup, network, server string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return r.DialIP(ctx, network, server)
	}
	addresses, first, err := r.resolve(ctx, life, running, host)
	if err != nil {
		return nil, err
	}
	var failures []error
	for i := range addresses {
		k := (first + i) % len(addresses)
		conn, err := r.dialOne(ctx, network, net.JoinHostPort(addresses[k], port), len(addresses)-i)
		if err == nil {
			r.setNext(host, k+1)
			return conn, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// dialOne connects to one address. It leaves time for the others of the addresses that are left.
func (r *Resolver) dialOne(ctx context.Context, network, address string, left int) (net.Conn, error) {
	if end, limited := ctx.Deadline(); limited && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, min(time.Until(end)/time.Duration(left), maxAddressWait))
		defer cancel()
	}
	return r.DialIP(ctx, network, address)
}

// setNext has the next attempt begin with an address.
func (r *Resolver) setNext(host string, next int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hosts[host].next = next
}

// resolve returns the addresses of a host, and the index of the one to begin with.
func (r *Resolver) resolve(ctx, life context.Context, running *sync.WaitGroup, host string) ([]string, int, error) {
	patience := ctx.Done()
	for {
		known, done := r.startLookup(life, running, host)
		if known {
			soon, cancel := context.WithTimeout(ctx, maxLookupWait)
			defer cancel()
			patience = soon.Done()
		}
		select {
		case <-done:
		case <-patience:
		}
		r.mu.Lock()
		h := r.hosts[host]
		addresses, next, err := h.addresses, h.next, h.err
		r.mu.Unlock()
		switch {
		case len(addresses) > 0:
			return addresses, next % len(addresses), nil
		case ctx.Err() != nil:
			return nil, 0, fmt.Errorf("%w: %w", &net.DNSError{Err: "the name servers have not answered yet", Name: host, IsTimeout: true}, context.Cause(ctx))
		case !errors.Is(err, context.Canceled):
			return nil, 0, err
		} // the lookup belonged to a session that is over
	}
}

// startLookup begins a lookup of a host unless one is under way. It reports whether addresses are
// known already, and returns a channel that is closed at the lookup's end.
func (r *Resolver) startLookup(life context.Context, running *sync.WaitGroup, host string) (known bool, done <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.hosts[host]
	if h == nil {
		h = &resolvedHost{}
		r.hosts[host] = h
	}
	if h.running == nil {
		h.running = make(chan struct{})
		running.Go(func() { r.finish(life, h, host) })
	}
	return len(h.addresses) > 0, h.running
}

// finish looks a host up.
func (r *Resolver) finish(life context.Context, h *resolvedHost, host string) {
	ctx, cancel := context.WithTimeout(life, lookupTimeout)
	defer cancel()
	addresses, err := r.Lookup(ctx, host)
	r.mu.Lock()
	defer r.mu.Unlock()
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
