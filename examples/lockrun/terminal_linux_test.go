package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// testTerminal is a terminal, with the text that programs have written to it.
type testTerminal struct {
	master *os.File
	mu     sync.Mutex
	text   bytes.Buffer
}

// openTerminal opens a new terminal.
func openTerminal(t *testing.T) (c *testTerminal, tty *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		zktest.Lack(t, errors.New("no terminals on this machine (mount devpts, with /dev/ptmx)"), err)
	}
	var number, unlocked int32
	for request, value := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlocked} {
		if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(unsafe.Pointer(value))); failed != 0 {
			t.Fatal(failed)
		}
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c = &testTerminal{master: master}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for b := make([]byte, 1000); ; {
			n, err := master.Read(b)
			c.mu.Lock()
			c.text.Write(b[:n])
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		tty.Close() // no process has the terminal open any more, so that the read ends
		<-read
		master.Close()
	})
	return c, tty
}

func (c *testTerminal) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// waitText waits until programs have written the text.
func (c *testTerminal) waitText(t *testing.T, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(c.output())
		}
	}()
	zktest.Eventually(t, timeLimit, func() bool { return strings.Contains(c.output(), text) }, "%q in the terminal", text)
}

func (c *testTerminal) typeKeys(t *testing.T, keys string) {
	t.Helper()
	if _, err := c.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// runInTerminal runs a shell script in a new terminal. In the script $LOCKRUN is lockrun.
func runInTerminal(t *testing.T, script string, env ...string) (*testTerminal, *exec.Cmd) {
	t.Helper()
	c, tty := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
	cmd.Env = slices.Concat(os.Environ(), []string{"LOCKRUN=" + os.Args[0], asLockrun + "=1", "GORACE=atexit_sleep_ms=0"}, env)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
	})
	return c, cmd
}

// A command reads from the terminal, gets its signals, and does not stop while it has the lock.
// Afterwards the script reads from the terminal.
func TestCommandReadsTerminal(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	path := s.Path(t)
	c, _ := runInTerminal(t, `
		"$LOCKRUN" -zk "$ZK" -lock "$LOCK" -- sh -c 'read x; echo "first $x"; trap "echo caught; read z; echo third \$z; exit 3" INT; read y; echo "second $y"; while :; do sleep 0.05; done'
		echo "code $?"
		read w && echo "the script reads $w"`, "ZK="+s.Addr(), "LOCK="+path)
	zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 1 }, "the lock is held")
	c.typeKeys(t, "one\n")
	c.waitText(t, "first one")
	c.typeKeys(t, "\x1a") // Ctrl-Z
	c.typeKeys(t, "two\n")
	c.waitText(t, "second two")
	c.typeKeys(t, "\x03") // Ctrl-C
	c.waitText(t, "caught")
	c.typeKeys(t, "three\n")
	c.waitText(t, "third three")
	c.waitText(t, "code 3")
	c.typeKeys(t, "four\n")
	c.waitText(t, "the script reads four")
	if n := strings.Count(c.output(), "caught"); n != 1 {
		t.Errorf("the command got Ctrl-C %d times: %s", n, c.output())
	}
}

// A command that does not read leaves the terminal to the other commands of its pipeline.
func TestPipelineKeepsTerminal(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	c, _ := runInTerminal(t, `"$LOCKRUN" -zk "$ZK" -lock "$LOCK" -- echo up | { read up; read x </dev/tty; echo "$up $x"; }`,
		"ZK="+s.Addr(), "LOCK="+s.Path(t))
	c.typeKeys(t, "one\n")
	c.waitText(t, "up one")
}

// The command of a lockrun in the background waits for the terminal until lockrun is in the
// foreground.
func TestCommandInBackgroundNeedsTerminal(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	path := s.Path(t)
	c, _ := runInTerminal(t, `set -m
		"$LOCKRUN" -zk "$ZK" -lock "$LOCK" -- sh -c 'read x; echo "read $x"' &
		read go; fg; echo "code $?"`, "ZK="+s.Addr(), "LOCK="+path)
	c.waitText(t, "bring lockrun to the foreground")
	c.typeKeys(t, "go\n")
	c.typeKeys(t, "one\n")
	c.waitText(t, "read one")
	c.waitText(t, "code 0")
}

// break asks for a confirmation in a terminal.
func TestBreakAsks(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	path := s.Path(t)
	held := holder(t, s, path)
	for _, answer := range []struct {
		keys, want string
	}{{"no\n", "code 75"}, {"\x03", "code 130"}, {"yes\n", "code 0"}} {
		c, _ := runInTerminal(t, `trap : INT; "$LOCKRUN" break -grace 0 "$LOCK" -zk "$ZK"; echo "code $?"`, "ZK="+s.Addr(), "LOCK="+path)
		c.waitText(t, "Type yes")
		if n := len(s.Nodes(t, path)); n != 1 {
			t.Errorf("%d nodes before the answer", n)
		}
		c.typeKeys(t, answer.keys)
		c.waitText(t, answer.want)
	}
	if code := held.code(t); code != exitLost {
		t.Errorf("the holder's code is %d; %s", code, &held.stderr)
	}
}
