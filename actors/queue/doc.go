// Package queue holds the rule that decides which contenders hold a lock, and what users of
// custom locks and observers need beside it: kinds, names and positions. A contender is a node in
// the lock's directory. The functions are pure: no I/O, no clock, no context.
//
// To be read in this order: rule.go, the rule and the recipes; names.go, which children of a
// directory are contenders; positions.go, the queue as an observer sees it; check.go, what a
// custom rule must be like. The state machine that applies the rule is in
// actors/internal/lockqueue.
package queue
