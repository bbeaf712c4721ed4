// Package simplelock is the state machine of one process's contender for a lock that is one node
// instead of a queue. It does no I/O and knows neither time nor contexts.
package simplelock
