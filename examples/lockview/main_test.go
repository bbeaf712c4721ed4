package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// timeLimit is how long a test waits for an event that must come, on the slowest machine.
const timeLimit = time.Minute

var screenshots = flag.String("screenshots", "", "write screenshots of the page to this `folder`")

func TestMain(m *testing.M) { zktest.Main(m) }

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
		o.listen = "127.0.0.1:0"
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
	set := flag.NewFlagSet("", flag.ContinueOnError)
	o.Define(set)
	must(t, set.Parse([]string{"-zk", s.Addr()}))
	return o
}

func connect(t *testing.T, s *zktest.Server) *actors.Locks {
	t.Helper()
	locks, err := actors.Connect(within(t), s.Addr(), actors.Config{})
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

// The server sends the present queues, and then each change.
func TestEvents(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		locks, path := connect(t, s), s.Path(t)
		first := acquire(t, locks.Mutex(path), actors.WithOwner("ann"))
		second := locks.Mutex(path).Acquire(within(t), actors.WithOwner("bob"))
		want := []string{"ann holds, bob", "bob holds", ""}
		events(t, startLockview(t, optionsFor(t, s, pageOptions{root: path})), func(event, data string) bool {
			if event != "locks" {
				return false
			}
			var u update
			must(t, json.Unmarshal([]byte(data), &u))
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
	for _, test := range []struct {
		name, method, path, host, contentType string
		revoke                                bool
		want                                  int
	}{
		{"page", "GET", "", "", "", false, 200},
		{"localhost", "GET", "", "localhost", "", false, 200},
		{"another name", "GET", "", "locks.example", "", false, 421},
		{"events by another name", "GET", "events", "locks.example", "", false, 421},
		{"revoke where it is off", "POST", "revoke", "", "application/json", false, 403},
		{"revoke by a form", "POST", "revoke", "", "text/plain", true, 415},
		{"revoke by another name", "POST", "revoke", "locks.example", "application/json", true, 421},
		{"revoke", "POST", "revoke", "", "application/json", true, 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			url := startLockview(t, optionsFor(t, s, pageOptions{root: "/", revoke: test.revoke}))
			request, err := http.NewRequestWithContext(within(t), test.method, url+test.path, strings.NewReader(body))
			must(t, err)
			if test.host != "" {
				request.Host = regexp.MustCompile(`127\.0\.0\.1`).ReplaceAllString(request.Host, test.host)
			}
			request.Header.Set("Content-Type", test.contentType)
			answer, err := http.DefaultClient.Do(request)
			must(t, err)
			answer.Body.Close()
			if answer.StatusCode != test.want {
				t.Errorf("the answer is %s, not %d", answer.Status, test.want)
			}
		})
	}
	<-grant.Revoked()
}

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
