// Package localqueue is the state machine by which the owners of one process share one contender
// of a lock. It does no I/O and knows neither time nor contexts.
package localqueue
