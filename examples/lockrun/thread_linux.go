package main

import "syscall"

// dieWithThread has the kernel kill the command when the thread that starts it ends.
func dieWithThread(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
