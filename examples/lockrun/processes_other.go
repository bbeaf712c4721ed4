//go:build !linux

package main

// running returns that the processes of a group are not known.
func running(int) ([]groupMember, bool) { return nil, false }

// zombies returns that no process is known.
func zombies(int) []int { return nil }
