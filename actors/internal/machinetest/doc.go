// Package machinetest holds what the tests of the state machines share: scripts, and random
// histories.
package machinetest
