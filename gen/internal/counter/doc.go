// Package counter is a small service on which the behaviour of generated code is
// tested.
package counter

//go:generate go run ../.. -I gen/internal/counter=. .
