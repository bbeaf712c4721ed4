package zkbridge

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMulti(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		b, dir := connected(t, Config{Servers: s.Addr()}), s.Path(t)
		data := []byte("data")
		ops := []any{
			&zk.CreateRequest{Path: dir, Data: data},
			&zk.CreateRequest{Path: dir + "/n-", Flags: zk.FlagEphemeralSequential},
			&zk.SetDataRequest{Path: dir, Data: []byte("set"), Version: 0},
			&zk.CheckVersionRequest{Path: dir, Version: 1},
			&zk.CreateRequest{Path: dir + "/gone"},
			&zk.DeleteRequest{Path: dir + "/gone", Version: 0},
		}
		results, err := b.Multi(within(t), ops...)
		if err != nil || len(results) != len(ops) || results[1].String != dir+"/n-0000000000" || results[2].Stat.Version != 1 {
			t.Fatalf("%+v, %v", results, err)
		}
		if c := ops[0].(*zk.CreateRequest); c.Acl != nil {
			t.Errorf("the caller's operation has become %+v", c)
		}
		got, stat, err := s.Client(t).Get(dir)
		if string(got) != "set" || stat.NumChildren != 1 || err != nil {
			t.Errorf("%q, %+v, %v", got, stat, err)
		}
		_, stat, err = s.Client(t).Get(dir + "/n-0000000000")
		if err != nil || stat.EphemeralOwner != b.Session().ID {
			t.Errorf("%+v, %v", stat, err)
		}
	})
}

func TestMultiFails(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		b, dir := connected(t, Config{Servers: s.Addr()}), s.Path(t)
		_, err := s.Client(t).Create(dir, nil, 0, zk.WorldACL(zk.PermRead|zk.PermDelete))
		must(t, err)
		good := &zk.CheckVersionRequest{Path: "/", Version: -1}
		for _, c := range []struct {
			op   any
			want error
			text string
		}{
			{&zk.CheckVersionRequest{Path: dir + "/none", Version: -1}, zk.ErrNoNode, "check " + dir + "/none"},
			{&zk.CheckVersionRequest{Path: dir, Version: 7}, zk.ErrBadVersion, "check " + dir},
			{&zk.SetDataRequest{Path: dir, Version: -1}, messages.Reason_NO_AUTH, "WRITE is not granted on " + dir},
			{&zk.DeleteRequest{Path: dir + "/x", Version: -1}, zk.ErrNoNode, "delete " + dir + "/x"},
			{&zk.CreateRequest{Path: dir + "/x"}, zk.ErrNoAuth, "CREATE is not granted on " + dir},
		} {
			_, err := b.Multi(within(t), good, c.op, good)
			var op *OpError
			if !errors.Is(err, c.want) || !errors.As(err, &op) || op.Index != 1 || !strings.Contains(err.Error(), c.text) ||
				!strings.Contains(err.Error(), "operation 1 ") {
				t.Errorf("%+v: %v", c.op, err)
			}
		}
	})
}

func TestMultiIsChecked(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	b := connected(t, Config{Servers: s.Addr()})
	fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Action: embedded.CutBefore})
	good := &zk.CheckVersionRequest{Path: "/", Version: -1}
	for _, c := range []struct {
		ops  []any
		text string
	}{
		{nil, "needs an operation"},
		{[]any{good, nil}, "operation 1"},
		{[]any{"x"}, "string"},
		{[]any{zk.DeleteRequest{Path: "/a"}}, "zk.DeleteRequest"},
		{[]any{(*zk.CreateRequest)(nil)}, "nil"}, {[]any{(*zk.DeleteRequest)(nil)}, "nil"},
		{[]any{(*zk.SetDataRequest)(nil)}, "nil"}, {[]any{(*zk.CheckVersionRequest)(nil)}, "nil"},
		{[]any{good, &zk.DeleteRequest{Path: "a"}}, `operation 1, delete: path "a"`},
		{[]any{&zk.DeleteRequest{Path: "/"}}, "root"},
		{[]any{&zk.CreateRequest{Path: "/a/"}}, `"/a/"`},
		{[]any{&zk.CreateRequest{Path: "/a", Flags: zk.FlagContainer}}, "flags 4"},
		{[]any{&zk.CreateRequest{Path: "/a", Flags: zk.FlagTTL}}, "flags 5"},
		{[]any{&zk.CreateRequest{Path: "/a", Flags: -1}}, "flags -1"},
		{[]any{&zk.SetDataRequest{Path: "/", Data: bytes.Repeat([]byte("x"), zkconn.MaxRequest)}}, "limit is 524288"},
		{slices.Repeat([]any{good}, 10000), "limit is 524288"},
	} {
		_, err := b.Multi(within(t), c.ops...)
		if !errors.Is(err, messages.Reason_INVALID) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: %v", c.ops, err)
		}
	}
	if n := len(fault.Firings()); n != 0 {
		t.Errorf("%d were sent", n)
	}
	fault.Remove()
	_, err := b.Multi(within(t), &zk.CreateRequest{Path: "/", Flags: zk.FlagSequence})
	must(t, err)
}

// The error says that the outcome is unknown if the request or the reply is lost.
func TestMultiOutcome(t *testing.T) {
	t.Parallel()
	for _, action := range []embedded.Action{embedded.CutBefore, embedded.DropReply} {
		s := zktest.Embedded(t)
		b := connected(t, Config{Servers: s.Addr()})
		fault := s.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Action: action})
		_, err := b.Multi(within(t), &zk.CreateRequest{Path: "/n"})
		if !errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) || errors.Is(err, messages.Reason_SESSION_LOST) {
			t.Errorf("%v: %v", action, err)
		}
		// This read is in the same session, and so behind a request that would be sent again.
		view, err := b.GetNode(within(t), "/n")
		if view.Exists != (action == embedded.DropReply) || err != nil {
			t.Errorf("%v: %+v, %v", action, view, err)
		}
		if n := len(fault.Firings()); n != 1 || b.Session().Epoch != 1 {
			t.Errorf("%d fired, %+v", n, b.Session())
		}
	}
}

func TestMultiNotSent(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	fail := once(zk.ErrNoServer)
	u := userOfFaulty(t, Config{Servers: s.Addr()}, &faultyClient{multi: func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
		if err := fail(); err != nil {
			return nil, err
		}
		return send()
	}})
	_, err := u.bridge.Multi(within(t), &zk.CreateRequest{Path: "/n"})
	must(t, err)
}

func TestMultiWhileSuspended(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		proxy := zktest.Proxy(t, s.Addr())
		b := connected(t, Config{Servers: proxy.Addr()})
		dir := s.Path(t)
		proxy.Refuse(true)
		proxy.Cut()
		zktest.Eventually(t, timeLimit, func() bool { return b.Session().State == messages.SessionState_SUSPENDED }, "suspended")

		ctx, cancel := context.WithTimeoutCause(context.Background(), 20*time.Millisecond, errors.New("enough"))
		defer cancel()
		_, err := b.Multi(ctx, &zk.CreateRequest{Path: dir + "-abandoned"})
		if !errors.Is(err, context.Cause(ctx)) || errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) || !strings.Contains(err.Error(), "not sent") {
			t.Errorf("%v", err)
		}
		if _, err := b.GetNode(ctx, dir); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Cause(ctx)) {
			t.Errorf("%v", err)
		}
		done := make(chan error)
		go func() {
			_, err := b.Multi(within(t), &zk.CreateRequest{Path: dir})
			done <- err
		}()
		zktest.Eventually(t, timeLimit, func() bool { return b.openRequests() == 1 }, "one request waits, the others are removed")
		proxy.Refuse(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
		view, err := b.GetNode(within(t), dir+"-abandoned")
		if view.Exists || err != nil || b.Session().Epoch != 1 {
			t.Errorf("%+v, %v", view, err)
		}
	})
}

// The outcome of a transaction that was sent is unknown when its context ends, and when the session
// ends.
func TestMultiLater(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, MaxSessionTimeout: time.Minute})
		sent := make(chan struct{}, 2)
		b := userOfFaulty(t, Config{Servers: "embedded:1", Dial: s.Dial}, &faultyClient{multi: func(ops []zkconn.Op, send sendFunc) ([]zk.MultiResponse, error) {
			sent <- struct{}{}
			return send()
		}}).bridge
		s.Inject(embedded.Fault{Op: embedded.OpMulti, Action: embedded.BlackHole})
		ctx, cancel := context.WithCancel(context.Background())
		abandoned, awaited := make(chan error), make(chan error)
		multi := func(ctx context.Context, done chan error) {
			_, err := b.Multi(ctx, &zk.CreateRequest{Path: "/n"})
			done <- err
		}
		go multi(ctx, abandoned)
		go multi(within(t), awaited)
		<-sent
		<-sent
		cancel()
		if err := <-abandoned; !errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) || !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		s.Expire(b.Session().ID)
		if err := <-awaited; !errors.Is(err, messages.Reason_OUTCOME_UNKNOWN) {
			t.Errorf("%v", err)
		}
	})
}

func TestMultiInAnotherEpoch(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		b, dir := connected(t, Config{Servers: s.Addr()}), s.Path(t)
		old := b.Session()
		write := &zk.CreateRequest{Path: dir}
		s.Expire(t, old.ID)
		zktest.Eventually(t, timeLimit, func() bool { return b.Session().Epoch == 2 }, "next session")
		for _, epoch := range []uint64{0, old.Epoch, 3} {
			if _, err := b.MultiIn(within(t), epoch, write); !errors.Is(err, messages.Reason_SESSION_LOST) {
				t.Errorf("epoch %d: %v", epoch, err)
			}
		}
		view, err := b.GetNode(within(t), dir)
		if err != nil || view.Exists {
			t.Errorf("%+v, %v", view, err)
		}
		_, err = b.MultiIn(within(t), 2, write)
		must(t, err)
		must(t, b.Close())
		if _, err := b.Multi(within(t), write); !errors.Is(err, messages.Reason_CLOSED) {
			t.Errorf("%v", err)
		}
		if _, err := b.GetNode(within(t), dir); !errors.Is(err, messages.Reason_CLOSED) {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := b.Multi(ctx, write); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "not sent") {
			t.Errorf("%v", err)
		}
	})
}

func TestGetNode(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		u, dir := newUser(t, connected(t, Config{Servers: s.Addr()})), s.Path(t)
		get := func(path string) NodeView {
			t.Helper()
			view, err := u.bridge.GetNode(within(t), path)
			must(t, err)
			return view
		}
		if view := get(dir + "/n"); view.Exists || len(view.Names) > 0 || view.DirectoryCzxid != 0 {
			t.Errorf("no directory: %+v", view)
		}
		first, second := u.created(dir, "n-"), u.created(dir, "n-")
		for _, m := range []*messages.Created{first, second} {
			view := get(dir + "/" + m.GetNode())
			slices.Sort(view.Names)
			if !view.Exists || view.Stat.Czxid != m.GetCzxid() || view.DirectoryCzxid != m.GetDirectoryCzxid() ||
				!slices.Equal(view.Names, []string{first.GetNode(), second.GetNode()}) {
				t.Errorf("%v: %+v", m, view)
			}
		}
		must(t, s.Client(t).Delete(dir+"/"+first.GetNode(), -1))
		if view := get(dir + "/" + first.GetNode()); view.Exists || !slices.Equal(view.Names, []string{second.GetNode()}) {
			t.Errorf("deleted: %+v", view)
		}
		for _, path := range []string{"", "/", "a", "/a/"} {
			if _, err := u.bridge.GetNode(within(t), path); !errors.Is(err, messages.Reason_INVALID) {
				t.Errorf("%q: %v", path, err)
			}
		}
		setRights(t, s.Client(t), dir, zk.PermAll&^zk.PermRead)
		_, err := u.bridge.GetNode(within(t), dir+"/x")
		if !errors.Is(err, messages.Reason_NO_AUTH) || !strings.Contains(err.Error(), "READ is not granted on "+dir) {
			t.Errorf("%v", err)
		}
	})
}

// GetNode returns the present state also from a server that lags.
func TestGetNodeOnALaggingServer(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	u := newUser(t, connected(t, Config{Servers: s.Addr()}))
	node := u.created("/d", "n-").GetNode()
	s.Embedded().Freeze(u.bridge.Session().ID)
	must(t, s.Client(t).Delete("/d/"+node, -1))
	if names := u.list("/d"); len(names) != 1 {
		t.Fatalf("the server does not lag: %v", names)
	}
	if view, err := u.bridge.GetNode(within(t), "/d/"+node); err != nil || view.Exists || len(view.Names) != 0 {
		t.Errorf("%+v, %v", view, err)
	}
}

func TestGetData(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		b, dir, conn := connected(t, Config{Servers: s.Addr()}), s.Path(t), s.Client(t)
		for _, path := range []string{dir + "/n", dir} { // without its directory, and without itself
			if view, err := b.GetData(within(t), path); err != nil || view.Exists {
				t.Errorf("%s: %+v, %v", path, view, err)
			}
		}
		makeNode(t, conn, dir, "first")
		_, err := conn.Set(dir, []byte("second"), -1)
		must(t, err)
		view, err := b.GetData(within(t), dir)
		if err != nil || !view.Exists || string(view.Data) != "second" || view.Stat.Version != 1 || len(view.Names) > 0 {
			t.Errorf("%+v, %v", view, err)
		}
		setRights(t, conn, dir, zk.PermAll&^zk.PermRead)
		_, err = b.GetData(within(t), dir)
		if !errors.Is(err, messages.Reason_NO_AUTH) || !strings.Contains(err.Error(), "READ is not granted on "+dir) {
			t.Errorf("%v", err)
		}
	})
}
