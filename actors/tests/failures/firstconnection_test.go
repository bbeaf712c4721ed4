package failures

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// finalCodes are the codes by which a server refuses credentials, which it would do again.
var finalCodes = []int32{-115, -102, loginWanted}

// TestFirstConnection has a server fail at the first handshake or the first login of a process, in the ways of
// TestRequestsTable. The process connects by a later attempt, unless the credentials are refused, the
// session timeout is another one, or the server always fails. Then Connect says so, and its attempts have pauses between them.
func TestFirstConnection(t *testing.T) {
	t.Parallel()
	sampled := sample.OneIn(t, 20)
	for _, op := range []embedded.Op{embedded.OpConnect, embedded.OpAuth} {
		for _, f := range rowsOf(op) {
			if sampled() {
				t.Run(fmt.Sprintf("%v/%s", op, f.name()), func(t *testing.T) {
					locktest.Bubble(t, func(v *locktest.Virtual) { connectFirst(v, f) })
				})
			}
		}
	}
}

func connectFirst(v *locktest.Virtual, f tableFault) {
	l := liar{path: v.LockPath, most: maxLies}
	failures := l.lies
	if f.lie != nil {
		l.begin(f.lie, f.Op, f.Times < 0)
	} else {
		injected := v.Inject(f.Fault)
		failures = func() int { return len(injected.Firings()) }
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	locks, err := actors.Connect(ctx, "embedded:1", actors.Config{SessionTimeout: locktest.SessionTimeout, Dial: (&locktest.Network{OnAnswer: l.onAnswer}).To(v.Fixture).Dial,
		Auth: []zkbridge.Auth{{Scheme: "digest", Credential: "me:secret"}}})
	if err == nil {
		defer locks.Close()
		locktest.Unlock(v, locktest.Lock(v, locks.Mutex(v.LockPath)))
	}
	wrongTimeout := err != nil && strings.Contains(err.Error(), "does not grant the session timeout")
	refused := f.Op == embedded.OpAuth && slices.Contains(finalCodes, f.Code)
	switch {
	case refused != errors.Is(err, messages.Reason_NO_AUTH):
		v.Errorf("credentials: %v", err)
	case err != nil && !refused && !wrongTimeout && (f.Times == 0 || !errors.Is(err, context.DeadlineExceeded)):
		v.Errorf("no connection: %v", err)
	}
	if n := failures(); n == 0 || n > maxFlaps {
		v.Errorf("the server has failed %d times", n)
	}
}
