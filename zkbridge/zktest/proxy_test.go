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

// echo is a server that sends every line back.
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

// say sends a line and waits at most d for the answer.
func (p echoClient) say(line string, d time.Duration) error {
	if _, err := fmt.Fprintln(p, line); err != nil {
		return err
	}
	return p.hear(line, d)
}

func (p echoClient) hear(line string, d time.Duration) error {
	_ = p.SetReadDeadline(time.Now().Add(d))
	got, err := p.lines.ReadString('\n')
	if err == nil && got != line+"\n" {
		err = fmt.Errorf("heard %q, want %q", got, line)
	}
	return err
}

const (
	soon  = 50 * time.Millisecond // silence this long is taken for silence
	later = time.Minute
)

func TestProxyForwards(t *testing.T) {
	p := Proxy(t, echo(t))
	for i := range 3 {
		c := connect(t, p.Addr())
		if err := c.say(fmt.Sprint("hello ", i), later); err != nil {
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
	if err := c.say("before", later); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if err := c.say("after", later); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection still stands: %v", err)
	}
	if err := connect(t, p.Addr()).say("again", later); err != nil {
		t.Errorf("a new connection: %v", err)
	}
}

func TestProxyRefuse(t *testing.T) {
	p := Proxy(t, echo(t))
	old := connect(t, p.Addr())
	if err := old.say("before", later); err != nil {
		t.Fatal(err)
	}
	p.Refuse(true)
	if err := connect(t, p.Addr()).say("refused", later); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a new connection was not refused: %v", err)
	}
	if err := old.say("still here", later); err != nil {
		t.Errorf("the old connection: %v", err)
	}
	p.Refuse(false)
	if err := connect(t, p.Addr()).say("again", later); err != nil {
		t.Errorf("after Refuse(false): %v", err)
	}
}

func TestProxyBlackHole(t *testing.T) {
	p := Proxy(t, echo(t))
	old := connect(t, p.Addr())
	if err := old.say("before", later); err != nil {
		t.Fatal(err)
	}
	p.BlackHole(true)
	p.BlackHole(true)
	fresh := connect(t, p.Addr())
	for _, c := range []echoClient{old, fresh} {
		if err := c.say("held", soon); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("not silent: %v", err)
		}
	}
	p.BlackHole(false)
	for _, c := range []echoClient{old, fresh} {
		if err := c.hear("held", later); err != nil {
			t.Errorf("not delivered: %v", err)
		}
	}
}

// The far side must not learn of a close either: a session lives on then, as in a partition.
func TestProxyBlackHoleHoldsClose(t *testing.T) {
	p := Proxy(t, echo(t))
	c := connect(t, p.Addr())
	if err := c.say("before", later); err != nil {
		t.Fatal(err)
	}
	p.BlackHole(true)
	c.Close()
	if n := p.Connections(); n != 1 {
		t.Errorf("%d connections, want the one that waits to be closed", n)
	}
	p.BlackHole(false)
	Eventually(t, later, func() bool { return p.Connections() == 0 }, "the close is delivered")
}

func TestProxyDelay(t *testing.T) {
	p := Proxy(t, echo(t))
	c := connect(t, p.Addr())
	p.Delay(soon)
	start := time.Now()
	for i := range 10 {
		fmt.Fprintln(c, i)
	}
	for i := range 10 {
		if err := c.hear(fmt.Sprint(i), later); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took < 2*soon {
		t.Errorf("a round trip took %v, want %v or more", took, 2*soon)
	}
}

func TestProxyTargetDown(t *testing.T) {
	p := Proxy(t, fmt.Sprint("127.0.0.1:", freePort()))
	if err := connect(t, p.Addr()).say("anybody there", later); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection stands without a server: %v", err)
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
		Eventually(t, later, func() bool {
			_, _, err := c.Exists("/")
			return err == nil
		}, "the client is back")
		if c.SessionID() != id {
			t.Error("the session was lost with the connection")
		}
	})
}
