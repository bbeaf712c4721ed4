package remote_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
)

// hostilePrefix begins the names of clients that keep to no protocol.
const hostilePrefix = "hostile"

// allowHostile is the ServerConfig.Allow of histories: clients that keep to no protocol may have the
// locks of the others, and must not break them.
func allowHostile(client remote.Peer, _ string, verb remote.Verb) error {
	if strings.HasPrefix(client.Name, hostilePrefix) && verb == remote.VerbChange {
		return actors.ErrNoAuth
	}
	return nil
}

// hostilePaths are the paths of the locks that the users of a history want.
var hostilePaths = []string{"/locks/0", "/locks/1", "/locks/queue", "/locks/sem", "/locks/delayed"}

// startHostile starts clients that keep to no protocol, until the faults are over.
func (w *world) startHostile(r *rand.Rand) {
	for i := range r.IntN(3) {
		name, random := fmt.Sprintf("%s%d", hostilePrefix, i), rand.New(rand.NewPCG(r.Uint64(), 9))
		w.undoing.Go(func() { w.attackFrom(name, random) })
	}
}

// attackFrom has a client open streams, one after the other, and send frames until the faults are over.
func (w *world) attackFrom(name string, r *rand.Rand) {
	c := drawn{r}
	a := newAttacker(c, 4<<20, hostilePaths)
	for frames := 2_000; frames > 0 && !w.attacked.Load(); {
		ctx, end := context.WithTimeout(context.Background(), 5*time.Second)
		stream, err := w.dialer(name)(ctx, w.names[r.IntN(len(w.names))])
		if err != nil { // it is down, or cut off
			end()
			<-time.After(100 * time.Millisecond)
			continue
		}
		go func() {
			for f, err := stream.Recv(); err == nil; f, err = stream.Recv() {
				a.take(f)
			}
		}()
		frame := a.hello(choose(c, 0, 0, 1, 1, 1, 2, 3, 4))
		for n := r.IntN(200); n > 0 && frames > 0 && !w.attacked.Load(); n, frames = n-1, frames-1 {
			var f messages.ClientFrame
			if proto.Unmarshal(frame, &f) != nil || stream.Send(&f) != nil { // gRPC ends such a stream
				break
			}
			if r.IntN(2) == 0 {
				<-time.After(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
			}
			frame = a.frame()
		}
		end()
	}
}
