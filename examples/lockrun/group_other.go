//go:build !unix

package main

import (
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

func setProcessGroup(*exec.Cmd) {}

func (g *group) signal(s os.Signal) {
	if g.cmd.Process.Signal(s) != nil {
		g.kill()
	}
}

func (g *group) terminate() { g.kill() }

func (g *group) kill() { g.cmd.Process.Kill() }

func (g *group) alive() bool {
	select {
	case <-g.ended:
		return false
	default:
		return true
	}
}

func (g *group) startGuard() error { return nil }
