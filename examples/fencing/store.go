//go:build unix

package main

import (
	"fmt"

	"github.com/actorlock/actorlock/actors"
)

// store is a resource outside of ZooKeeper. It remembers the greatest token it has seen.
// A database would keep it in a column CHAR(42): the texts of tokens sort as tokens do. It
// remembers longer than the ensemble: one that is restored from a backup would be refused
// until its generation is raised.
type store struct {
	newest actors.Token
	value  string
}

func (s *store) write(token actors.Token, value string) error {
	if token.Compare(s.newest) < 0 {
		return fmt.Errorf("token %v is older than %v", token, s.newest)
	}
	s.newest, s.value = token, value
	return nil
}
