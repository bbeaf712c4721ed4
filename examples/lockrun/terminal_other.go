//go:build !(linux || darwin || freebsd || netbsd)

package main

import "os"

// terminal is empty: here a command in the background cannot read from the terminal.
type terminal struct{}

func catchContinue() <-chan os.Signal { return nil }

func (g *group) onStop(os.Signal) {}

func (g *group) onStopWithoutTerminal(os.Signal) {}

func (g *group) onContinue() {}

func (g *group) returnTerminal() {}

func (g *group) endTerminalJob() {}
