// Package machinetest holds what the tests of the state machines share. scripts.go runs scripts,
// whose lines line.go parses, and answers.go checks that each answer in a script has an effect that
// asked for it. random.go runs random histories, and rules.go has custom rules.
package machinetest
