package zktest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo starts a server that sends every line back, and returns its address.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

// echoClient is a client of echo.
type echoClient struct {
	net.Conn
	lines *bufio.Reader
}

func connect(t *testing.T, addr string) echoClient {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return echoClient{c, bufio.NewReader(c)}
}

// exchange sends a line, and waits at most d for the answer.
func (p echoClient) exchange(line string, d time.Duration) error {
	if _, err := fmt.Fprintln(p, line); err != nil {
		return err
	}
	return p.expect(line, d)
}

// expect waits at most d for a line.
func (p echoClient) expect(line string, d time.Duration) error {
	_ = p.SetReadDeadline(time.Now().Add(d))
	got, err := p.lines.ReadString('\n')
	if err == nil && got != line+"\n" {
		err = fmt.Errorf("received %q, want %q", got, line)
	}
	return err
}

const (
	shortTime = 50 * time.Millisecond // a client without an answer for this long gets none
	timeLimit = TimeLimit             // for an event that must come, on the slowest machine
)

func TestProxyForwards(t *testing.T) {
	p := Proxy(t, echo(t))
	for i := range 3 {
		c := connect(t, p.Addr())
		if err := c.exchange(fmt.Sprint("hello ", i), timeLimit); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.Connections(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

func TestProxyCut(t *testing.T) {
	p := Proxy(t, echo(t))
	c := connect(t, p.Addr())
	if err := c.exchange("before", timeLimit); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if err := c.exchange("after", timeLimit); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is still open: %v", err)
	}
	if err := connect(t, p.Addr()).exchange("again", timeLimit); err != nil {
		t.Errorf("a new connection: %v", err)
	}
}

func TestProxyRefuse(t *testing.T) {
	p := Proxy(t, echo(t))
	old := connect(t, p.Addr())
	if err := old.exchange("before", timeLimit); err != nil {
		t.Fatal(err)
	}
	p.Refuse(true)
	if err := connect(t, p.Addr()).exchange("refused", timeLimit); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a new connection was not refused: %v", err)
	}
	if err := old.exchange("still here", timeLimit); err != nil {
		t.Errorf("the old connection: %v", err)
	}
	p.Refuse(false)
	if err := connect(t, p.Addr()).exchange("again", timeLimit); err != nil {
		t.Errorf("after Refuse(false): %v", err)
	}
}

func TestProxyBlackHole(t *testing.T) {
	p := Proxy(t, echo(t))
	old := connect(t, p.Addr())
	if err := old.exchange("before", timeLimit); err != nil {
		t.Fatal(err)
	}
	p.BlackHole(true)
	p.BlackHole(true)
	second := connect(t, p.Addr())
	for _, c := range []echoClient{old, second} {
		if err := c.exchange("held", shortTime); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("answered: %v", err)
		}
	}
	p.BlackHole(false)
	for _, c := range []echoClient{old, second} {
		if err := c.expect("held", timeLimit); err != nil {
			t.Errorf("not delivered: %v", err)
		}
	}
}

// The server does not learn of a close: its session goes on, as in a partition.
func TestProxyBlackHoleHoldsClose(t *testing.T) {
	p := Proxy(t, echo(t))
	c := connect(t, p.Addr())
	if err := c.exchange("before", timeLimit); err != nil {
		t.Fatal(err)
	}
	p.BlackHole(true)
	c.Close()
	if n := p.Connections(); n != 1 {
		t.Errorf("%d connections, want the one whose close is held back", n)
	}
	p.BlackHole(false)
	Eventually(t, timeLimit, func() bool { return p.Connections() == 0 }, "the close is delivered")
}

func TestProxyDelay(t *testing.T) {
	p := Proxy(t, echo(t))
	c := connect(t, p.Addr())
	p.Delay(shortTime)
	start := time.Now()
	for i := range 10 {
		fmt.Fprintln(c, i)
	}
	for i := range 10 {
		if err := c.expect(fmt.Sprint(i), timeLimit); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took < 2*shortTime {
		t.Errorf("a round trip took %v, want %v or more", took, 2*shortTime)
	}
}

func TestProxyTargetDown(t *testing.T) {
	port := reservePort()
	t.Cleanup(port.release)
	p := Proxy(t, port.addr())
	if err := connect(t, p.Addr()).exchange("hello", timeLimit); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is open without a server: %v", err)
	}
}

// A client behind the proxy loses its connection, not its session.
func TestProxyZooKeeper(t *testing.T) {
	t.Parallel()
	Each(t, func(t *testing.T, s *Server) {
		p := Proxy(t, s.Addr())
		behind := &Server{addr: p.Addr(), embedded: s.embedded, nodes: s.nodes, shared: true}
		c := behind.Client(t)
		id := c.SessionID()
		p.Cut()
		Eventually(t, timeLimit, func() bool {
			_, _, err := c.Exists("/")
			return err == nil
		}, "the client has reconnected")
		if c.SessionID() != id {
			t.Error("the session was lost with the connection")
		}
	})
}
