package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/examples/internal/servetest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// timeLimit is how long a test waits for an event that must come, on the slowest machine.
const timeLimit = 2 * time.Minute

var screenshots = flag.String("screenshots", "", "write screenshots of the page to this `folder`")

func TestMain(m *testing.M) {
	connectLimit = timeLimit
	zktest.Main(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// within returns a context that bounds what a test waits for.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	t.Cleanup(cancel)
	return ctx
}

// startLockview starts lockview, and returns the address of its page.
func startLockview(t *testing.T, o pageOptions) (url string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		o.listen = cmp.Or(o.listen, "127.0.0.1:0")
		err := run(ctx, o, write)
		write.CloseWithError(errors.Join(err, io.EOF))
		ended <- err
	}()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
	})
	line, err := bufio.NewReader(read).ReadString('\n')
	must(t, err)
	go io.Copy(io.Discard, read)
	_, url, found := strings.Cut(strings.TrimSpace(line), ": ")
	if !found {
		t.Fatalf("lockview has printed %q", line)
	}
	return url
}

// optionsFor sets the flags for a server.
func optionsFor(t *testing.T, s *zktest.Server, o pageOptions) pageOptions {
	t.Helper()
	return withFlags(t, o, "-zk", s.Addr())
}

func withFlags(t *testing.T, o pageOptions, flags ...string) pageOptions {
	t.Helper()
	set := flag.NewFlagSet("", flag.ContinueOnError)
	o.Define(set)
	must(t, set.Parse(flags))
	return o
}

func connect(t *testing.T, s *zktest.Server) *actors.Locks {
	t.Helper()
	locks, err := actors.Connect(within(t), s.Addr(), actors.Config{SessionTimeout: time.Minute}) // a busy machine must not end it
	must(t, err)
	t.Cleanup(func() { locks.Close() })
	return locks
}

type blockingLock interface {
	Lock(context.Context, ...actors.Option) (*actors.Grant, error)
}

// acquire acquires a lock.
func acquire(t *testing.T, lock blockingLock, options ...actors.Option) *actors.Grant {
	t.Helper()
	grant, err := lock.Lock(within(t), options...)
	must(t, err)
	return grant
}

// events reads the events of a page until found returns true.
func events(t *testing.T, url string, found func(event, data string) bool) {
	t.Helper()
	request, err := http.NewRequestWithContext(within(t), "GET", url+"events", nil)
	must(t, err)
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 16<<20)
	event := ""
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = name
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && found(event, data) {
			return
		}
	}
	t.Fatalf("the events end: %v", lines.Err())
}

// The server sends the present queues, and then each change. A free lock is shown without
// contenders, or is gone if the board has looked for locks meanwhile.
func TestEvents(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		testEvents(t, s, "-zk", s.Addr())
	})
	t.Run("through a lock server", func(t *testing.T) {
		s := zktest.Embedded(t)
		addr, _ := servetest.Start(t, s, 0, nil)
		testEvents(t, s, "-server", addr, "-insecure")
	})
}

func testEvents(t *testing.T, s *zktest.Server, flags ...string) {
	t.Helper()
	locks, path := connect(t, s), s.Path(t)
	first := acquire(t, locks.Mutex(path), actors.WithOwner("ann"))
	second := locks.Mutex(path).Acquire(within(t), actors.WithOwner("bob"))
	want := []string{"ann holds, bob", "bob holds", ""}
	events(t, startLockview(t, withFlags(t, pageOptions{root: path}, flags...)), func(event, data string) bool {
		if event != "locks" {
			return false
		}
		var u update
		must(t, json.Unmarshal([]byte(data), &u))
		for _, free := range u.Gone {
			u.Changed = append(u.Changed, lock{Path: free})
		}
		for _, l := range u.Changed {
			if l.Path != path || summary(l) != want[0] {
				continue
			}
			switch want = want[1:]; len(want) {
			case 2:
				must(t, first.Unlock(within(t)))
			case 1:
				grant, err := second.Wait(within(t))
				must(t, err)
				must(t, grant.Unlock(within(t)))
			}
		}
		return len(want) == 0
	})
}

func summary(l lock) string {
	var all []string
	for _, c := range l.Contenders {
		if c.Holds {
			c.Owner += " holds"
		}
		all = append(all, c.Owner)
	}
	return strings.Join(all, ", ")
}

// A page of another site cannot use this server by another name of its address, or by a form.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	grant := acquire(t, connect(t, s).Mutex("/lock"))
	body := fmt.Sprintf(`{"node": %q}`, grant.Node())
	const json = "application/json"
	readOnly, revoking := startLockview(t, optionsFor(t, s, pageOptions{root: "/"})),
		startLockview(t, optionsFor(t, s, pageOptions{root: "/", revoke: true, hosts: "ops1,locks.example"}))
	for _, test := range []struct {
		name, url, method, path, host string
		header                        map[string]string
		want                          int
	}{
		{"page", readOnly, "GET", "", "", nil, 200},
		{"localhost", readOnly, "GET", "", "localhost", nil, 200},
		{"localhost by a tunnel", readOnly, "GET", "", "localhost:9", nil, 200},
		{"an address", readOnly, "GET", "", "192.0.2.7:8080", nil, 200},
		{"an IPv6 address", readOnly, "GET", "", "[2001:db8::7]:8080", nil, 200},
		{"another name", readOnly, "GET", "", "locks.example", nil, 421},
		{"events by another name", readOnly, "GET", "events", "locks.example:8080", nil, 421},
		{"the end of a name", readOnly, "GET", "", "evil-localhost", nil, 421},
		{"a number as a name", readOnly, "GET", "", "2130706433", nil, 421},
		{"a name of -hosts", revoking, "GET", "", "OPS1:8080", nil, 200},
		{"another name than those of -hosts", revoking, "GET", "", "ops2", nil, 421},
		{"revoke where it is off", readOnly, "POST", "revoke", "", map[string]string{"Content-Type": json}, 403},
		{"revoke by a form", revoking, "POST", "revoke", "", map[string]string{"Content-Type": "text/plain"}, 415},
		{"revoke by another name", revoking, "POST", "revoke", "evil.example", map[string]string{"Content-Type": json}, 421},
		{"revoke from another site", revoking, "POST", "revoke", "", map[string]string{"Content-Type": json, "Origin": "http://evil.example"}, 403},
		{"revoke from another port", revoking, "POST", "revoke", "ops1:8080", map[string]string{"Content-Type": json, "Origin": "http://ops1:80"}, 403},
		{"revoke from a sandbox", revoking, "POST", "revoke", "", map[string]string{"Content-Type": json, "Origin": "null"}, 403},
		{"revoke as a browser says", revoking, "POST", "revoke", "", map[string]string{"Content-Type": json, "Sec-Fetch-Site": "cross-site"}, 403},
		{"revoke from the page", revoking, "POST", "revoke", "locks.example", map[string]string{"Content-Type": json, "Origin": "https://locks.example"}, 200},
		{"revoke", revoking, "POST", "revoke", "", map[string]string{"Content-Type": json}, 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(within(t), test.method, test.url+test.path, strings.NewReader(body))
			must(t, err)
			if test.host != "" {
				request.Host = test.host
			}
			for name, value := range test.header {
				request.Header.Set(name, value)
			}
			answer, err := http.DefaultClient.Do(request)
			must(t, err)
			answer.Body.Close()
			if answer.StatusCode != test.want {
				t.Errorf("the answer is %s, not %d", answer.Status, test.want)
			}
			if policy := answer.Header.Get("Content-Security-Policy"); answer.StatusCode != 421 && !strings.Contains(policy, "frame-ancestors 'none'") {
				t.Errorf("the policy is %q", policy)
			}
		})
	}
	<-grant.Revoked()
}

// lockview warns if other machines can reach it.
func TestWarnsBeyondLoopback(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	for listen, warns := range map[string]bool{"127.0.0.1:0": false, "[::1]:0": false, "0.0.0.0:0": true} {
		warnings := make(chan string, 1)
		o := optionsFor(t, s, pageOptions{root: "/", listen: listen, revoke: true})
		o.Warn = func(format string, args ...any) { warnings <- fmt.Sprintf(format, args...) }
		url := startLockview(t, o)
		close(warnings)
		if text := <-warnings; warns != strings.Contains(text, "ask holders to release, without a login") {
			t.Errorf("%s: %q", url, text)
		}
	}
}

// A page that does not read its events does not stay.
func TestPageDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(nil, "/")
		b.shown["/a"] = shown{lock: lock{Path: "/a"}, observed: true}
		ended := make(chan struct{})
		here, there := net.Pipe() // which buffers nothing
		listener := &oneConnection{conns: make(chan net.Conn, 1)}
		listener.conns <- here
		web := newWebServer(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			(&server{board: b}).events(w, r)
		}))
		go web.Serve(listener)
		fmt.Fprint(there, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		start := time.Now()
		<-ended
		if d := time.Since(start); d > requestLimit {
			t.Errorf("the page has gone after %v", d)
		}
		web.Close()
		there.Close()
	})
}

// oneConnection is a listener for one connection.
type oneConnection struct {
	conns chan net.Conn
	once  sync.Once
}

func (l *oneConnection) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l *oneConnection) Close() error {
	l.once.Do(func() { close(l.conns) })
	return nil
}

func (l *oneConnection) Addr() net.Addr { return &net.TCPAddr{} }

func TestArguments(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":       "/",
		"/locks": "/locks",
		"locks":  `path "locks": it must begin with /`,
		"/a /b":  `argument "/b": one path is accepted, after the flags`,
	} {
		var o pageOptions
		err := o.parsePath(strings.Fields(args))
		got := o.root
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, not %q", args, got, want)
		}
	}
}

// createAsCurator creates a contender as Curator does.
func createAsCurator(t *testing.T, s *zktest.Server, path, data string) {
	t.Helper()
	conn := s.Client(t)
	_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	_, err = conn.Create(path+"/_c_00000000-0000-4000-8000-000000000001-lock-", []byte(data), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	must(t, err)
}
