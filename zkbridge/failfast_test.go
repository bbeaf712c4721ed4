//lint:file-ignore SA1012 a nil context is what is tested

package zkbridge

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// blockingCalls returns each call of a bridge that blocks until ZooKeeper answers.
func blockingCalls(b *internals, dir string) map[string]func(context.Context) error {
	check := CheckNode(dir)
	return map[string]func(context.Context) error{
		"Multi":       func(ctx context.Context) error { _, err := b.Multi(ctx, check); return err },
		"MultiIn":     func(ctx context.Context) error { _, err := b.MultiIn(ctx, b.Session().Epoch, check); return err },
		"MultiWithin": func(ctx context.Context) error { _, err := b.MultiWithin(ctx, dir, check); return err },
		"WriteGeneration": func(ctx context.Context) error {
			n, err := b.GetData(ctx, GenerationPath)
			if err != nil {
				return err
			}
			return b.WriteGeneration(ctx, n, 1)
		},
		"GetNode":       func(ctx context.Context) error { _, err := b.GetNode(ctx, dir); return err },
		"GetData":       func(ctx context.Context) error { _, err := b.GetData(ctx, dir); return err },
		"PeekData":      func(ctx context.Context) error { _, err := b.PeekData(ctx, dir); return err },
		"Children":      func(ctx context.Context) error { _, err := b.Children(ctx, dir, nil); return err },
		"WatchChildren": func(ctx context.Context) error { _, _, err := b.WatchChildren(ctx, dir, nil, nil); return err },
	}
}

// A nil context is an error, not a panic.
func TestNilContext(t *testing.T) {
	t.Parallel()
	b := connected(t, Config{Servers: zktest.Embedded(t).Addr()})
	calls := blockingCalls(b, "/d")
	calls["Connected"] = open(t, Config{Servers: "127.0.0.1:1"}).Connected
	for name, call := range calls {
		if err := call(nil); !errors.Is(err, messages.Reason_INVALID) || !errors.Is(err, ask.ErrNilContext) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// With FailFast the calls end when the connection is lost, and fail at once without one. Without,
// they go on over the next connection.
func TestFailFast(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		proxy := zktest.Proxy(t, s.Addr())
		b, dir := connected(t, Config{Servers: proxy.Addr(), SessionTimeout: time.Minute}), s.Path(t)
		_, err := b.Multi(within(t), &zk.CreateRequest{Path: dir})
		must(t, err)
		expect := func(name string, err error) {
			if !errors.Is(err, messages.Reason_DISCONNECTED) || !strings.Contains(err.Error(), "no answer from ZooKeeper since") {
				t.Errorf("%s: %v", name, err)
			}
		}
		fast, patient := blockingCalls(b.FailFast(true), dir), blockingCalls(b.FailFast(true).FailFast(false), dir)
		maps.DeleteFunc(patient, func(name string, _ func(context.Context) error) bool {
			return name == "WriteGeneration" || strings.HasPrefix(name, "Multi") // once sent, it is not sent again
		})
		proxy.BlackHole(true)
		ended, goesOn := map[string]chan error{}, map[string]chan error{}
		begin := func(call func(context.Context) error) chan error {
			done := make(chan error, 1)
			go func() { done <- call(within(t)) }()
			return done
		}
		for name, call := range fast {
			ended[name] = begin(call)
		}
		for name, call := range patient {
			goesOn[name] = begin(call)
		}
		zktest.Eventually(t, timeLimit, func() bool { return b.openRequests() == len(fast)+len(patient) }, "all calls wait")
		proxy.Refuse(true)
		proxy.Cut()
		for name, done := range ended {
			if err := <-done; !errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) { // sent, and the answer lost
				expect(name, err)
			}
		}
		if n := b.openRequests(); n != len(patient) {
			t.Errorf("%d requests are open, not %d", n, len(patient))
		}
		for name, call := range fast {
			err := call(within(t))
			expect(name, err)
			if errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) {
				t.Errorf("%s was not sent: %v", name, err)
			}
		}
		over, cancel := context.WithCancel(within(t))
		cancel()
		for name, call := range fast { // also if ctx has ended
			expect(name, call(over))
		}
		proxy.Refuse(false)
		proxy.BlackHole(false)
		for name, done := range goesOn {
			if err := <-done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		delete(fast, "WriteGeneration") // it ends the session
		for name, call := range fast {
			if err := call(within(t)); err != nil {
				t.Errorf("%s, connected again: %v", name, err)
			}
		}
	})
}

// A transaction that a caller has given up is not sent again, also if ZooKeeper has not had it.
func TestFailFastNotSentAgain(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	proxy := zktest.Proxy(t, s.Addr())
	sent, answer := make(chan struct{}), make(chan struct{})
	fail := once(zk.ErrNoServer)
	b := userOfFaulty(t, Config{Servers: proxy.Addr(), SessionTimeout: time.Minute}, &faultyClient{multi: func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
		if err := fail(); err != nil {
			close(sent)
			<-answer
			return nil, err
		}
		return send()
	}}).bridge
	done := make(chan error, 1)
	go func() {
		_, err := b.FailFast(true).Multi(within(t), &zk.CreateRequest{Path: "/n"})
		done <- err
	}()
	<-sent
	proxy.Cut()
	if err := <-done; !errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) || !errors.Is(err, messages.Reason_DISCONNECTED) {
		t.Error(err)
	}
	close(answer)
	zktest.Eventually(t, timeLimit, func() bool { return b.Session().State == messages.SessionState_CONNECTED }, "connected")
	view, err := b.GetNode(within(t), "/n")
	if err != nil || view.Exists {
		t.Errorf("%+v, %v", view, err)
	}
}

// MultiWithin creates the directory of a missing node, and the chroot above it.
func TestMultiWithin(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		root := s.Path(t)
		b := connected(t, Config{Servers: s.Addr() + root + "/app"})
		for _, path := range []string{"/a/b/one", "/a/b/two"} {
			_, err := b.MultiWithin(within(t), "/a/b", &zk.CreateRequest{Path: path})
			must(t, err)
		}
		_, err := b.MultiWithin(within(t), "/a/b", CheckNode("/a/b/three"))
		if failed, is := errors.AsType[*OpError](err); !is || !errors.Is(err, zk.ErrNoNode) || failed.Path != "/a/b/three" {
			t.Error(err)
		}
		if _, err := b.MultiWithin(within(t), "a/", CheckNode("/a")); !errors.Is(err, messages.Reason_INVALID) || !strings.Contains(err.Error(), `"a/"`) {
			t.Error(err)
		}
		if names := s.Nodes(t, root+"/app/a/b"); len(names) != 2 {
			t.Error(names)
		}
	})
}

// WriteGeneration writes the node unless it has changed since it was read. It creates a missing
// directory of it.
func TestWriteGeneration(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	b, conn := connected(t, Config{Servers: s.Addr()}), s.Client(t)
	missing, err := b.GetData(within(t), GenerationPath)
	must(t, err)
	deleteTree(t, conn, GenerationDirectory)
	if err := b.WriteGeneration(within(t), missing, 7); err != nil && !errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) {
		t.Error(err) // the write ends the session, which may overtake its answer
	}
	zktest.Eventually(t, timeLimit, func() bool { return b.Session().Epoch == 2 }, "the write ends the session")
	if err := b.WriteGeneration(within(t), missing, 8); !errors.Is(err, zk.ErrNodeExists) {
		t.Error(err)
	}
	n, err := b.GetData(within(t), GenerationPath)
	if err != nil || string(n.Data) != "7" {
		t.Errorf("%q, %v", n.Data, err)
	}
	n.Stat.Version++
	if err := b.WriteGeneration(within(t), n, 8); !errors.Is(err, zk.ErrBadVersion) {
		t.Error(err)
	}
}
