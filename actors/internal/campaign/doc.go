// Package campaign has what the two ways to take part in an election share: which failed requests
// are repeated, after which pause (retry.go), and why a term ends (term.go). singleton.go is the actor
// that takes part by messages.
package campaign
