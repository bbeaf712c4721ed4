// Package invariants is the switch by which tests have the state machines of running actors
// check their invariants.
package invariants

// Violated is called with each error that a Check of a state machine returns, from within the
// machine's actor. The machines check nothing while it is nil. It must not be changed while actors
// run.
var Violated func(error)

// Check checks the invariants of a machine, if Violated is set.
func Check(machine interface{ Check() error }) {
	if Violated == nil {
		return
	}
	if err := machine.Check(); err != nil {
		Violated(err)
	}
}
