package zkconn

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// testNetwork has name servers, and servers behind addresses.
type testNetwork struct {
	*Resolver
	t       *testing.T
	session context.Context // of the lookups
	end     context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	answer  []string      // of the name servers
	failure error         // their answer, if not nil
	delay   time.Duration // until they answer
	silent  string        // the address of a server that does not answer
	refuses string        // the address of a server that refuses
	dialed  []string
}

func newNetwork(t *testing.T, answer ...string) *testNetwork {
	n := &testNetwork{Resolver: NewResolver(), t: t, answer: answer}
	n.session, n.end = context.WithCancel(t.Context())
	n.Resolver.Lookup = func(ctx context.Context, _ string) ([]string, error) {
		n.mu.Lock()
		answer, failure, delay := n.answer, n.failure, n.delay
		n.mu.Unlock()
		select {
		case <-time.After(delay):
			return answer, failure
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	n.Resolver.DialIP = func(ctx context.Context, _, address string) (net.Conn, error) {
		n.mu.Lock()
		n.dialed = append(n.dialed, strings.TrimSuffix(address, ":2181"))
		silent, refuses := n.silent+":2181" == address, n.refuses+":2181" == address
		n.mu.Unlock()
		switch {
		case silent:
			<-ctx.Done()
			return nil, ctx.Err()
		case refuses:
			return nil, errors.New("refused")
		}
		client, server := net.Pipe()
		server.Close()
		return client, nil
	}
	return n
}

// connect dials with a limit of a second, and checks which addresses are tried.
func (n *testNetwork) connect(addresses ...string) error {
	n.t.Helper()
	n.dialed = nil
	ctx, cancel := context.WithTimeout(n.session, time.Second)
	defer cancel()
	conn, err := n.dial(ctx, n.session, &n.running, "tcp", "zk.test:2181")
	if err == nil {
		conn.Close()
	}
	if !slices.Equal(n.dialed, addresses) {
		n.t.Errorf("dialed %v, not %v: %v", n.dialed, addresses, err)
	}
	return err
}

func TestAddressesInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, "a", "b", "c")
		must(t, n.connect("a"))
		must(t, n.connect("b"))
		n.refuses = "c"
		must(t, n.connect("c", "a"))
		n.silent = "b"
		must(t, n.connect("b", "c", "a"))
		n.answer = []string{"c"}
		if err := n.connect("c"); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%v", err)
		}
		n.end()
		n.running.Wait()
	})
}

// A lookup that takes longer than an attempt goes on during the next attempt.
func TestSlowLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, "a")
		n.delay = 5500 * time.Millisecond
		begun := time.Now()
		for range 5 {
			var lookup *net.DNSError
			err := n.connect()
			if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &lookup) || !strings.Contains(err.Error(), "lookup zk.test: the name servers have not") {
				t.Errorf("%v", err)
			}
		}
		must(t, n.connect("a"))
		if took := time.Since(begun); took != n.delay {
			t.Errorf("connected after %v", took)
		}
		n.end()
		n.running.Wait()
	})
}

// The last answer counts while the name servers fail, and not once the name is gone.
func TestNameServersFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, "a")
		must(t, n.connect("a"))
		n.failure = &net.DNSError{Err: "server misbehaving", IsTemporary: true}
		must(t, n.connect("a"))
		n.failure, n.delay = nil, time.Hour
		begun := time.Now()
		must(t, n.connect("a"))
		if took := time.Since(begun); took != maxLookupWait {
			t.Errorf("waited %v for the name servers", took)
		}
		n.end() // that lookup ends with its session; the next one has its own
		n.running.Wait()
		n.session, n.end = context.WithCancel(t.Context())
		n.delay, n.failure, n.answer = 0, &net.DNSError{Err: "no such host", IsNotFound: true}, nil
		if err := n.connect(); err == nil || !strings.Contains(err.Error(), "no such host") {
			t.Errorf("%v", err)
		}
		n.failure, n.answer = nil, []string{"b"}
		must(t, n.connect("b"))
		n.end()
		n.running.Wait()
	})
}
