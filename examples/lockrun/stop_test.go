//go:build unix

package main

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// The kill of a command that ignores TERM does not wait for a look at the processes, which can take longer
// than the rest of the session.
func TestKillWaitsForNoLook(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", `trap "" TERM; echo up; sleep 1000`)
	up, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	g, err := start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer g.stopGuard()
	if _, err := up.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	looksMayEnd := make(chan struct{})
	g.processes = func(int) ([]groupMember, bool) {
		<-looksMayEnd
		return nil, true
	}
	stopped := make(chan error, 1)
	go func() { stopped <- g.stop(time.Millisecond) }()
	select {
	case <-g.ended:
		if g.code != bySignal+int(syscall.SIGKILL) {
			t.Errorf("code %d", g.code)
		}
	case <-time.After(timeLimit):
		t.Error("the command still runs")
		g.kill()
	}
	close(looksMayEnd)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	g.looks.Wait()
}
