//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-id" { // started by run
		main()
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // for the processes that run starts
	zktest.Main(m)
}

func TestRun(t *testing.T) {
	zktest.OneRunIn(t, 8) // it waits for the ends of sessions, as a user sees them
	t.Parallel()
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		check(t, "")
	})
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		check(t, s.Addr())
	})
}

func check(t *testing.T, servers string) {
	const session = 4 * time.Second // no leader's session may expire without a fault
	var out bytes.Buffer
	if err := run(t.Context(), servers, session, &out); err != nil {
		t.Fatalf("%v after\n%s", err, &out)
	}
	t.Logf("\n%s", &out)
	leaders := regexp.MustCompile(`(?m)^  (\w+) leads.*token \S+$`).FindAllStringSubmatch(out.String(), -1)
	var names []string
	for _, leader := range leaders {
		names = append(names, leader[1])
	}
	if got := strings.Join(names, " "); got != "one two three one two" {
		t.Errorf("the leaders are %s", got)
	}
}

// A candidate whose output nobody reads resigns when it is told to.
func TestUnreadOutput(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		output, unread := io.Pipe()
		defer output.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := participant{servers: s.Addr(), path: s.Path(t), id: "one", session: 4 * time.Second}
		over := make(chan error, 1)
		go func() { over <- c.run(ctx, unread) }()
		locks, err := actors.Connect(ctx, s.Addr(), actors.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close()
		await := func(n int) {
			t.Helper()
			zktest.Eventually(t, zktest.TimeLimit, func() bool {
				all, err := locks.Election(c.path).Participants(t.Context())
				return err == nil && len(all) == n
			}, "candidates")
		}
		await(1)
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
		await(0)
	})
}

// An interrupted run leaves no process.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := textWriter{text: "SIGTERM to one", do: cancel}
	if err := run(ctx, "", 4*time.Second, &out); !errors.Is(err, context.Canceled) {
		t.Errorf("%v after\n%s", err, &out)
	}
}

// textWriter calls do when a text is written.
type textWriter struct {
	bytes.Buffer
	text string
	do   func()
}

func (w *textWriter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.do()
	}
	return w.Buffer.Write(p)
}

func TestMeasure(t *testing.T) {
	zktest.OneRunIn(t, 4) // as TestRun
	t.Parallel()
	s := zktest.Embedded(t)
	var out bytes.Buffer
	if err := measure(t.Context(), s.Addr()+"/chroot", "4s", 1, &out); err != nil {
		t.Fatalf("%v after\n%s", err, &out)
	}
	t.Logf("\n%s", &out)
	row := regexp.MustCompile(`(?m)^\| 4s \|( \d+\.\d\d s \(.*\) \|){5}$`)
	if !row.MatchString(out.String()) {
		t.Errorf("the table is incomplete:\n%s", &out)
	}
	for _, invalid := range []struct {
		servers, sessions string
		rounds            int
	}{{"", "4s", 1}, {s.Addr(), "4", 1}, {s.Addr(), "4s", 0}} {
		if err := measure(t.Context(), invalid.servers, invalid.sessions, invalid.rounds, &out); err == nil {
			t.Errorf("no error for %+v", invalid)
		}
	}
}
