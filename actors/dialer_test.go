package actors_test

import (
	"context"
	"net"
	"slices"
	"sync"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// dialer records the requests that pass through it.
type dialer struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu  sync.Mutex
	ops []embedded.Op
}

func newDialer() *dialer { return &dialer{dial: new(net.Dialer).DialContext} }

func (d *dialer) config(cfg *actors.Config) { cfg.Dial = d.Dial }

func (d *dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &countingConn{Conn: c, d: d}, nil
}

// during counts the requests, pings left out, while f runs.
func (d *dialer) during(f func()) (total int, ops map[embedded.Op]int) {
	ops = map[embedded.Op]int{}
	for _, op := range d.record(f) {
		ops[op]++
		total++
	}
	return total, ops
}

// record returns the requests that were sent while f ran, in their order, without pings.
func (d *dialer) record(f func()) []embedded.Op {
	d.take()
	f()
	return d.seen()
}

// seen returns the requests since its last call.
func (d *dialer) seen() []embedded.Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ops)
}

func (d *dialer) take() []embedded.Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	ops := d.ops
	d.ops = nil
	return ops
}

type countingConn struct {
	net.Conn
	d       *dialer
	greeted bool
}

// Write sees one message at a time.
func (c *countingConn) Write(b []byte) (int, error) {
	if c.greeted && len(b) >= 12 {
		op := embedded.Op(int32(uint32(b[8])<<24 | uint32(b[9])<<16 | uint32(b[10])<<8 | uint32(b[11])))
		if op != embedded.OpPing {
			c.d.mu.Lock()
			c.d.ops = append(c.d.ops, op)
			c.d.mu.Unlock()
		}
	}
	c.greeted = true
	return c.Conn.Write(b)
}
