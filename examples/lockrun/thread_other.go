//go:build unix && !linux

package main

import "syscall"

func dieWithThread(*syscall.SysProcAttr) {}
