//go:build !linux

package simulation

func setThreadPriorities() {}
