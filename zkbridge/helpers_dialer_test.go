package zkbridge

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// counter counts the requests that a bridge sends, by type.
type counter struct {
	mu     sync.Mutex
	counts map[int32]int
}

func (c *counter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return tapped(c.count)(ctx, network, address)
}

func (c *counter) count(b []byte) {
	op := int32(binary.BigEndian.Uint32(b[8:]))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[int32]int{}
	}
	if op != int32(embedded.OpPing) {
		c.counts[op]++
	}
}

// tapped is a Dial that looks at each message before it is sent.
func tapped(look func(message []byte)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return tap{conn, look}, nil
	}
}

type tap struct {
	net.Conn
	look func([]byte)
}

// Write takes one or several messages.
func (t tap) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := messageLength + int(binary.BigEndian.Uint32(rest))
		t.look(rest[:n])
		rest = rest[n:]
	}
	return t.Conn.Write(b)
}

// wait waits until so many messages were sent since take.
func (c *counter) wait(t *testing.T, op, n int32) {
	t.Helper()
	zktest.Eventually(t, patience, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.counts[op] == int(n)
	}, "%d messages of type %d were sent", n, op)
}

// take returns the counts since its last call.
func (c *counter) take() map[int32]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.counts
	c.counts = nil
	return counts
}

// messageLength is the size of what stands before each message.
const messageLength = 4
