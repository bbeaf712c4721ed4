//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// asEmbedded is the environment variable that makes the test binary run as the command.
const asEmbedded = "ACTORLOCK_TEST_BE_EMBEDDED"

func TestMain(m *testing.M) {
	if os.Getenv(asEmbedded) != "" {
		main()
		os.Exit(0)
	}
	zktest.Main(m)
}

func TestServesUntilInterrupted(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-listen", "127.0.0.1:0")
			cmd.Env = append(os.Environ(), asEmbedded+"=1", "GORACE=atexit_sleep_ms=0")
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			addr, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "listening on ")
			if err != nil || !ok || strings.HasSuffix(addr, ":0") {
				t.Fatalf("it printed %q, %v", line, err)
			}
			locks, err := actors.Connect(t.Context(), addr, actors.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer locks.Close()
			grant, err := locks.Mutex("/lock").Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := grant.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			if err := cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

func TestListenFails(t *testing.T) {
	if err := serve(t.Context(), embedded.ServerConfig{Addr: "nonsense"}, os.Stdout); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("the error is %v; it should name the address", err)
	}
}
