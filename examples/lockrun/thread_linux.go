package main

import "syscall"

// dieWithThread makes the kernel kill the command when the thread that starts it ends.
func dieWithThread(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
