// Package semaphore is the state machine of the requests of one process for the permits of a
// semaphore. It does no I/O and knows neither time nor contexts.
package semaphore
