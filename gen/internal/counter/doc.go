// Package counter is a small service for tests of generated code, and for the example of package
// host.
package counter

//go:generate go run ../.. -I gen/internal/counter=. .
