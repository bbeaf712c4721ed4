package remote_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A directory whose nodes have more than a lock server reads for a question: Inspect and Observe fail,
// and the client's other questions are answered.
func TestQuestionAboutALargeDirectory(t *testing.T) {
	server := zktest.Embedded(t)
	s := serve(t, server.Addr(), remote.ServerConfig{})
	client := server.Client(t)
	if _, err := client.Create("/large", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := client.Create(fmt.Sprintf("/large/_c_0123456789abcdef0123456789abcdef-lock-%010d", i), make([]byte, 900<<10), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	l := dial(t, s.addr)
	lockOf(t, l.Mutex("/small"))
	isLimit := func(question string, err error) {
		t.Helper()
		if !errors.Is(err, actors.ErrLimit) || !strings.Contains(err.Error(), "/large have more than the 8388608 bytes") {
			t.Errorf("%s: %v", question, err)
		}
	}
	for range 6 { // more than may be read at once, if one that has failed went on to count
		_, err := l.Inspect(t.Context(), "/large")
		isLimit("Inspect", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for q := range l.Observe(ctx, "/large") {
		isLimit("Observe", q.Err)
		break
	}
	q, err := l.Inspect(t.Context(), "/small")
	if err != nil || len(q.Participants) != 1 {
		t.Errorf("Inspect of another lock: %v, %v", q, err)
	}
	if n := s.server.Stats().LimitRefusals[remote.LimitAnswers]; n < 7 { // an Observe may have read it again
		t.Errorf("%d refusals are counted of 7", n)
	}
}
