//go:build unix

package main

import (
	"fmt"

	"github.com/actorlock/actorlock/actors"
)

// store is a resource outside of ZooKeeper. It stores the greatest token of its writes. A
// database would have a column CHAR(42) for it: the texts of tokens sort as tokens do. After a
// restore of the ensemble from a backup, the store refuses new tokens until the generation is
// raised.
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
