package localqueue

import (
	"fmt"

	"github.com/actorlock/actorlock/actors/queue"
)

// Check returns an error that names an invariant which does not hold, or nil. It is meant for
// tests.
func (l *Queue) Check() error {
	if l.requests.Len() == 0 && (len(l.owners)+len(l.holders)+l.tries > 0 || l.waiting.first != nil || l.waiting.last != nil ||
		l.waiting.kinds.has(^queue.KindSet(0)) || l.holding.has(^queue.KindSet(0))) {
		return fmt.Errorf("no request is open, and %+v is left", *l)
	}
	return nil
}
