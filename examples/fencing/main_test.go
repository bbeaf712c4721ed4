//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-"+holderFlag { // started by run
		main()
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // for the processes that run starts
	zktest.Main(m)
}

func TestRun(t *testing.T) {
	zktest.OneRunIn(t, 4) // it waits for the end of a session, as a user sees it
	t.Parallel()
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		check(t, "")
	})
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		t.Parallel()
		check(t, s.Addr())
		for _, name := range s.Nodes(t, "/fencing") {
			if strings.HasSuffix(name, "-stock") {
				t.Errorf("%s is left", name)
			}
		}
	})
}

func check(t *testing.T, servers string) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	session := 4 * time.Second
	if zktest.Exhaustive() {
		session = 10 * time.Second // the holder's session must not expire before its pause
	}
	var out bytes.Buffer
	if err := run(ctx, servers, session, &out); err != nil {
		t.Fatalf("%v after\n%s", err, &out)
	}
	t.Logf("\n%s", &out)
	tokens := regexp.MustCompile(`the lock.*, token (\S+)`).FindAllStringSubmatch(out.String(), -1)
	if len(tokens) != 2 || tokens[0][1] >= tokens[1][1] {
		t.Errorf("the tokens are %q", tokens)
	}
	from := 0
	for _, part := range []string{
		"confirms to a third party",
		"is paused",
		"refuses to confirm its token: grant is not held",
		`We write "41 left"`,
		"ZooKeeper refuses its write: zkbridge: operation 0 of the transaction, check ",
		"Its grant is over: session is lost",
		"refuses it by its token: token " + tokens[0][1] + " is older than " + tokens[1][1],
		"as we have left it",
	} {
		next := strings.Index(out.String()[from:], part)
		if next < 0 {
			t.Fatalf("%q is missing, or not in order, in\n%s", part, &out)
		}
		from += next
	}
	checkEnded(t, out.String())
}

// checkEnded checks that the holder has ended.
func checkEnded(t *testing.T, out string) {
	t.Helper()
	found := regexp.MustCompile(`^Process (\d+) takes`).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("no process in\n%s", out)
	}
	pid, _ := strconv.Atoi(found[1])
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d has not ended: %v", pid, err)
	}
}

// An interrupted run leaves no process, though it is paused.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := textWriter{text: "is paused", do: cancel}
	if err := run(ctx, "", 0, &out); !errors.Is(err, context.Canceled) {
		t.Errorf("%v after\n%s", err, &out)
	}
	checkEnded(t, out.String())
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

func TestUnreachable(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := run(ctx, "127.0.0.1:1", 4*time.Second, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("the error is %v; it should name the server", err)
	}
}
