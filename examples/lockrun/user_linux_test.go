package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// nobody is a user without rights.
const nobody = 65534

// copyFile copies a program into a folder that all users may read. Another process writes the copy: a process
// that this one starts at the same time would have the file open, and the copy could not be run.
func copyFile(t *testing.T, program string, mode os.FileMode) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), filepath.Base(program))
	if text, err := exec.Command("cp", program, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	folder := filepath.Dir(copied)
	if err := errors.Join(os.Chmod(copied, mode), os.Chmod(folder, 0o755), os.Chmod(filepath.Dir(folder), 0o755)); err != nil {
		t.Fatal(err)
	}
	return copied
}

// rootCommand returns a command that runs a shell script as root for any user, as sudo does.
func rootCommand(t *testing.T, script string) []string {
	t.Helper()
	setpriv, err := exec.LookPath("setpriv")
	if err == nil && os.Geteuid() != 0 {
		err = errors.New("the user is not root")
	}
	if err != nil {
		zktest.Lack(t, errors.New("no set-uid program can be made here (setpriv, and root)"), err)
	}
	return []string{copyFile(t, setpriv, 0o755|os.ModeSetuid), "--reuid", "0", "--clear-groups", "sh", "-c", script}
}

// asNobody starts a lockrun of a user without rights, whose command is root's and reads what end
// writes.
func asNobody(t *testing.T, flags []string, command ...string) (p *lockrunProcess, end func()) {
	t.Helper()
	lockrun := copyFile(t, os.Args[0], 0o755)
	input, write := pipe(t)
	p = launchWith(t, func(cmd *exec.Cmd) {
		cmd.Path, cmd.Dir, cmd.Stdin = lockrun, "/", input
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}, append(append(flags, "--"), command...)...)
	end = func() {
		t.Helper()
		if _, err := write.WriteString("\n"); err != nil {
			t.Fatal(err)
		}
	}
	return p, end
}

// says waits until lockrun has written a text to its standard error.
func (p *lockrunProcess) says(t *testing.T, text string) {
	t.Helper()
	zktest.Eventually(t, timeLimit, func() bool { return strings.Contains(p.stderr.String(), text) }, "it says %q", text)
}

// A command that lockrun may not signal is reported at its start, at a signal and at the loss, and the
// exit code is not the one of a stopped command.
func TestCommandOfAnotherUser(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	path := s.Path(t)
	p, end := asNobody(t, lockFlags(s, path), rootCommand(t, "echo up; read end; echo ended")...)
	p.line(t)
	p.says(t, "setpriv is set-uid")
	p.says(t, "could not stop the command if the lock were lost")
	p.signal(t, syscall.SIGTERM)
	p.says(t, `the command does not get the signal "terminated"`)
	if err := s.Client(t).Delete(path+"/"+s.Nodes(t, path)[0], -1); err != nil {
		t.Fatal(err)
	}
	p.says(t, "the lock is lost, and the command, which may not be signalled, goes on")
	end()
	if line := p.line(t); line != "ended" {
		t.Errorf("the command printed %q", line)
	}
	if code, text := p.code(t), p.stderr.String(); code != exitNotStopped || !strings.Contains(text, "could not stop the command: process group") ||
		strings.Contains(text, "was stopped") {
		t.Errorf("code %d, want %d; %s", code, exitNotStopped, text)
	}
}

// The process that outlives a lockrun says that it may not kill the command.
func TestKilledBesideCommandOfAnotherUser(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	p, end := asNobody(t, lockFlags(s, s.Path(t)), rootCommand(t, "echo up; read end")...)
	p.line(t)
	p.signal(t, syscall.SIGTERM)
	p.says(t, "the command does not get the signal") // so the start is over, whose last step names the group to the guard
	p.signal(t, syscall.SIGKILL)
	p.says(t, "lockrun was killed, and its command goes on without the lock")
	end()
}

// Only a part of the group cannot be signalled.
func TestPartOfGroupOfAnotherUser(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	path := s.Path(t)
	command := rootCommand(t, "echo up; read end <&3")
	p, end := asNobody(t, lockFlags(s, path), append([]string{"sh", "-c", `exec 3<&0; "$@" & wait`, "sh"}, command...)...)
	p.line(t)
	if err := s.Client(t).Delete(path+"/"+s.Nodes(t, path)[0], -1); err != nil {
		t.Fatal(err)
	}
	if code, text := p.code(t), p.stderr.String(); code != exitNotStopped || !strings.Contains(text, "a process of it still runs") || strings.Contains(text, "set-uid") {
		t.Errorf("code %d, want %d; %s", code, exitNotStopped, text)
	}
	end()
}

// lockrun ends by the signal of its command, and not by one of a command's exit code.
func TestEndsBySignal(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	for _, number := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGKILL, syscall.SIGUSR1, syscall.SIGSEGV} {
		p := launch(t, "", append(lockFlags(s, s.Path(t)), "--", "sh", "-c", "ulimit -c 0; kill -"+strconv.Itoa(int(number))+" $$")...)
		p.code(t)
		if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != number {
			t.Errorf("%v: %v; %s", number, p.cmd.ProcessState, &p.stderr)
		}
	}
	p := launch(t, "", append(lockFlags(s, s.Path(t)), "--", "sh", "-c", "exit 130")...)
	p.code(t)
	if code := p.cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("code %d; %s", code, &p.stderr)
	}
}

// Ctrl-C ends the loop of a shell around lockrun, also if the command has the terminal.
func TestInterruptEndsLoop(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		zktest.Lack(t, errors.New("no bash on this machine"), err)
	}
	s := zktest.Embedded(t)
	for what, command := range map[string]string{"lockrun has the terminal": "echo up; sleep 1000", "the command has it": "read x; echo up; sleep 1000"} {
		t.Run(what, func(t *testing.T) {
			c, _ := runInTerminal(t, `trap : INT; bash -c 'for i in 1 2 3; do echo round $i; "$LOCKRUN" -zk "$ZK" -lock "$LOCK" -- sh -c "$COMMAND"; done; echo end of loop'; echo "code $?"`,
				"ZK="+s.Addr(), "LOCK="+s.Path(t), "COMMAND="+command)
			if strings.HasPrefix(command, "read") {
				c.waitText(t, "round 1")
				c.typeKeys(t, "go\n")
			}
			c.waitText(t, "up")
			c.typeKeys(t, "\x03")
			zktest.Eventually(t, timeLimit, func() bool { return strings.Contains(c.output(), "code") || strings.Contains(c.output(), "round 2") }, "the end of a round: %s", c.output())
			if text := c.output(); strings.Contains(text, "round 2") || strings.Contains(text, "end of loop") {
				t.Error(text)
			}
		})
	}
}

// The command ignores what lockrun was started to ignore, as it would without lockrun.
func TestIgnoredSignals(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	const ignored = `grep SigIgn /proc/self/status`
	for _, script := range []string{`%s`, `%s & wait`, `trap '' HUP; %s`, `trap '' USR1 TERM PIPE; %s`} {
		if !knowsIgnored && strings.Contains(script, "USR1") {
			continue // without cgo lockrun knows of INT and HUP alone, as its page says
		}
		out := func(command string) string {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(script, "%s", command))
			cmd.Env = append(os.Environ(), asLockrun+"=1", "GORACE=atexit_sleep_ms=0", "LOCKRUN="+os.Args[0], "ZK="+s.Addr(), "LOCK="+s.Path(t))
			text, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v; %s", script, err, text)
			}
			return string(text)
		}
		direct, under := out(ignored), out(`"$LOCKRUN" -zk "$ZK" -lock "$LOCK" -- `+ignored)
		if direct != under || !strings.Contains(direct, "SigIgn") {
			t.Errorf("%s: %s without lockrun, %s under it", script, direct, under)
		}
	}
}

// As process 1 lockrun leaves no zombies, also with several commands, whose ends it does not confuse.
func TestProcessOne(t *testing.T) {
	t.Parallel()
	s := zktest.Embedded(t)
	unshare := []string{"--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"}
	if text, err := exec.CommandContext(t.Context(), "unshare", append(unshare, "true")...).CombinedOutput(); err != nil {
		zktest.Lack(t, errors.New("no process namespaces on this machine (unshare)"), fmt.Errorf("%w: %s", err, text))
	}
	const orphans = `for i in 1 2 3 4 5; do (sleep 0.1 & echo $! >>"$0"); done
		while read -r id; do while kill -0 $id 2>/dev/null; do sleep 0.05; done; done <"$0"; echo gone; kill -TERM $$`
	list := filepath.Join(t.TempDir(), "orphans")
	begin := func(flags ...string) *lockrunProcess {
		p := launchWith(t, func(cmd *exec.Cmd) {
			cmd.Args = slices.Concat([]string{"unshare"}, unshare, []string{os.Args[0]}, cmd.Args[1:])
			cmd.Path, cmd.Err = exec.LookPath("unshare")
		}, append(lockFlags(s, s.Path(t), flags...), "--", "sh", "-c", orphans, list+"{}")...)
		if line := p.line(t); line != "gone" {
			t.Errorf("the command printed %q", line)
		}
		return p
	}
	p := begin()
	if code := p.code(t); code != 143 {
		t.Errorf("code %d; %s", code, &p.stderr)
	}
	shares := begin("-partitions", "2")
	for range 2 { // of the other partition, and of one whose command begins again
		if line := shares.line(t); line != "gone" {
			t.Errorf("a command printed %q", line)
		}
	}
	if text := shares.stderr.String(); !strings.Contains(text, "by signal 15") {
		t.Errorf("%s", text)
	}
}
