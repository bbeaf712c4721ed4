package zktest

import (
	"os/exec"
	"runtime"
	"testing"
)

// Process is a child process. On Linux it ends with the test binary, also with a killed one.
type Process struct {
	cmd   *exec.Cmd
	done  chan struct{} // closed when it has ended and has been waited for
	state string        // how it ended; read after done
}

// Spawn starts a command as a child process that is killed when the test ends.
func Spawn(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p, err := spawn(cmd)
	if err != nil {
		t.Fatalf("zktest: start %s: %v", cmd.Path, err)
	}
	t.Cleanup(p.Kill)
	return p
}

// spawn starts the command. The goroutine that starts it keeps its thread until the child has
// ended, because the kernel sends the death signal to the child when the starting thread ends, and
// not when the process does.
func spawn(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	dieWithParent(cmd)
	started := make(chan error)
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the state has more than its error
			p.state = cmd.ProcessState.String()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Kill ends the process as kill -9 does, also a frozen one, and returns when it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only when it has ended already
	<-p.done
}
