package zktest

import (
	"os/exec"
	"runtime"
)

// process is a child process and the goroutine that waits for it.
type process struct {
	cmd   *exec.Cmd
	done  chan struct{} // closed when it has ended and has been waited for
	state string        // how it ended; read after done
}

// spawn starts the command. The goroutine that started it keeps its thread until the child has ended, because the
// death signal that ends the child with us is sent when the starting thread ends, not the process.
func spawn(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	dieWithParent(cmd)
	started := make(chan error)
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the state below says more
			p.state = cmd.ProcessState.String()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process, frozen or not, and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only when it has ended already
	<-p.done
}
