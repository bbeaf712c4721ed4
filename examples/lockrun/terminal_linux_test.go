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

// console is a terminal, and what programs have written to it.
type console struct {
	keyboard *os.File // and screen
	mu       sync.Mutex
	text     bytes.Buffer
}

// openConsole opens a new terminal.
func openConsole(t *testing.T) (c *console, tty *os.File) {
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
	c = &console{keyboard: master}
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
		tty.Close() // the last one: the read ends
		<-read
		master.Close()
	})
	return c, tty
}

func (c *console) screen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// shows waits until a text is on the screen.
func (c *console) shows(t *testing.T, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(c.screen())
		}
	}()
	zktest.Eventually(t, timeLimit, func() bool { return strings.Contains(c.screen(), text) }, "%q on the screen", text)
}

func (c *console) types(t *testing.T, keys string) {
	t.Helper()
	if _, err := c.keyboard.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// onConsole runs a shell script at a terminal, in which $LOCKRUN is lockrun.
func onConsole(t *testing.T, script string, env ...string) (*console, *exec.Cmd) {
	t.Helper()
	c, tty := openConsole(t)
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

// A command reads from the terminal, gets its signals, and does not stop with the lock. The terminal
// is the script's again afterwards.
func TestCommandReadsTerminal(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	path := s.Path(t)
	c, _ := onConsole(t, `
		"$LOCKRUN" -zk "$ZK" -lock "$LOCK" -- sh -c 'read x; echo "first $x"; trap "echo caught; read z; echo third \$z; exit 3" INT; read y; echo "second $y"; while :; do sleep 0.05; done'
		echo "code $?"
		read w && echo "the script reads $w"`, "ZK="+s.Addr(), "LOCK="+path)
	zktest.Eventually(t, timeLimit, func() bool { return len(s.Nodes(t, path)) == 1 }, "the lock is held")
	c.types(t, "one\n")
	c.shows(t, "first one")
	c.types(t, "\x1a") // Ctrl-Z
	c.types(t, "two\n")
	c.shows(t, "second two")
	c.types(t, "\x03") // Ctrl-C
	c.shows(t, "caught")
	c.types(t, "three\n")
	c.shows(t, "third three")
	c.shows(t, "code 3")
	c.types(t, "four\n")
	c.shows(t, "the script reads four")
	if n := strings.Count(c.screen(), "caught"); n != 1 {
		t.Errorf("the command got Ctrl-C %d times: %s", n, c.screen())
	}
}

// A command that does not read leaves the terminal to the rest of its pipeline.
func TestPipelineKeepsTerminal(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	c, _ := onConsole(t, `"$LOCKRUN" -zk "$ZK" -lock "$LOCK" -- echo up | { read up; read x </dev/tty; echo "$up $x"; }`,
		"ZK="+s.Addr(), "LOCK="+s.Path(t))
	c.types(t, "one\n")
	c.shows(t, "up one")
}

// The command of a lockrun in the background waits for the terminal until lockrun is in the foreground.
func TestCommandInBackgroundNeedsTerminal(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	path := s.Path(t)
	c, _ := onConsole(t, `set -m
		"$LOCKRUN" -zk "$ZK" -lock "$LOCK" -- sh -c 'read x; echo "read $x"' &
		read go; fg; echo "code $?"`, "ZK="+s.Addr(), "LOCK="+path)
	c.shows(t, "bring lockrun to the foreground")
	c.types(t, "go\n")
	c.types(t, "one\n")
	c.shows(t, "read one")
	c.shows(t, "code 0")
}

// break asks on a terminal.
func TestBreakAsks(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	path := s.Path(t)
	held := holder(t, s, path)
	for _, answer := range []struct {
		keys, says string
	}{{"no\n", "code 75"}, {"\x03", "code 130"}, {"yes\n", "code 0"}} {
		c, _ := onConsole(t, `trap : INT; "$LOCKRUN" break -grace 0 "$LOCK" -zk "$ZK"; echo "code $?"`, "ZK="+s.Addr(), "LOCK="+path)
		c.shows(t, "Type yes")
		if n := len(s.Nodes(t, path)); n != 1 {
			t.Errorf("%d nodes before the answer", n)
		}
		c.types(t, answer.keys)
		c.shows(t, answer.says)
	}
	if code := held.code(t); code != exitLost {
		t.Errorf("the holder's code is %d; %s", code, &held.stderr)
	}
}
