//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
)

// Without process groups lockrun stops only the command itself.

func forwarded() []os.Signal { return []os.Signal{os.Interrupt} }

func catchSignals() <-chan os.Signal {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded()...)
	return signals
}

func number(os.Signal) int { return 2 } // the number of SIGINT on Unix

// signals are the values of -on-revoke.
var signals = map[string]os.Signal{"INT": os.Interrupt, "KILL": os.Kill}

// wait blocks until the command has ended.
func (g *group) wait() {
	g.cmd.Wait() // its error is in ProcessState
	g.code = g.cmd.ProcessState.ExitCode()
}

func reapZombies() {}

func setProcessGroup(*exec.Cmd) {}

func (g *group) signal(s os.Signal) error {
	if g.cmd.Process.Signal(s) == nil {
		return nil
	}
	return g.kill()
}

func (g *group) terminate() error { return g.kill() }

func (g *group) kill() error {
	if err := g.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func (g *group) blocked() error { return nil }

func (g *group) runs() bool { return g.alive() }

func (g *group) outOfReach() error { return nil }

func mayChangeUser(string) bool { return false }

func endBySignal(int) {}

func (g *group) alive() bool {
	select {
	case <-g.ended:
		return false
	default:
		return true
	}
}

func (g *group) startGuard() error { return nil }
