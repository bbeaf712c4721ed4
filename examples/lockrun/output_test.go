//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// brokenOutputs are outputs to which nothing can be written. Each function makes one the standard
// error of a command.
var brokenOutputs = map[string]func(t *testing.T, cmd *exec.Cmd){
	"closed pipe": func(t *testing.T, cmd *exec.Cmd) {
		read, write := pipe(t)
		read.Close()
		cmd.Stderr = write
	},
	"full pipe": func(t *testing.T, cmd *exec.Cmd) {
		_, write := pipe(t)
		fd := int(write.Fd())
		if err := syscall.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := syscall.Write(fd, make([]byte, 100)); errors.Is(err, syscall.EAGAIN) {
				break
			} else if err != nil && !errors.Is(err, syscall.EINTR) {
				t.Fatal(err)
			}
		}
		if err := syscall.SetNonblock(fd, false); err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = write
	},
	"file at its limit": func(t *testing.T, cmd *exec.Cmd) {
		file, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		cmd.Stderr = file
		cmd.Args = append([]string{"sh", "-c", `ulimit -f 0; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	},
}

// pipe opens a pipe, which the end of the test closes.
func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		read.Close()
		write.Close()
	})
	return read, write
}

// Whatever becomes of its messages, lockrun guards its command, which writes none itself: the
// command goes on, gets its signals, and is stopped when the lock is lost, and lockrun ends.
func TestBrokenStandardError(t *testing.T) {
	t.Parallel()
	const script = `exec 2>/dev/null; trap "exit 3" USR1; trap "exit 4" TERM; echo up; while :; do sleep 0.05; done`
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		for name, breakOutput := range brokenOutputs {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				path := s.Path(t)
				start := func(more ...string) *lockrunProcess {
					args := append(lockFlags(s, path, append(more, "-v")...), "--", "sh", "-c", script)
					return launchWith(t, func(cmd *exec.Cmd) { breakOutput(t, cmd) }, args...)
				}
				first := start("-on-revoke", "USR1")
				first.line(t)
				next := start()
				zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 2 }, "the next one waits")
				output(t, 0, "revoke", "-zk", s.Addr(), path)
				if code := first.code(t); code != 3 {
					t.Errorf("code %d after a revoke, want the command's own; %v", code, first.cmd.ProcessState)
				}
				next.line(t)
				output(t, 0, "break", "-zk", s.Addr(), "-yes", "-grace", "0", path)
				if code := next.code(t); code != exitLost {
					t.Errorf("code %d after a loss, want %d; %v", code, exitLost, next.cmd.ProcessState)
				}
				if code := start("-wait", "0", "-session", "1ms").code(t); code != exitUsage {
					t.Errorf("code %d of a usage error; want %d", code, exitUsage)
				}
			})
		}
	})
}

// A standard error that nobody reads does not delay the end of the command when the session is
// lost.
func TestFullPipeAndLostSession(t *testing.T) {
	zktest.OneRunIn(t, 8) // it waits for about ten seconds
	t.Parallel()
	const session = 10 * time.Second
	s := zktest.Embedded(t)
	fifo, groupEnded := namedPipe(t)
	args := append(lockFlags(s, s.Path(t), "-v", "-session", session.String()), "--", "sh", "-c", ignoresTERM, fifo)
	p := launchWith(t, func(cmd *exec.Cmd) { brokenOutputs["full pipe"](t, cmd) }, args...)
	p.line(t)
	s.Freeze(t)
	defer s.Thaw(t)
	zktest.Eventually(t, timeLimit, func() bool { return isClosed(groupEnded) }, "the command's group ends")
	if len(s.Embedded().Sessions()) == 0 {
		t.Error("the session had expired before the group was dead")
	}
	if code := p.code(t); code != exitLost {
		t.Errorf("code %d, want %d", code, exitLost)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
