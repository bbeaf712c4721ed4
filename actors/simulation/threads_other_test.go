//go:build !linux

package simulation

func quieten() {}
