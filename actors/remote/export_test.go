package remote

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// Transports of tests.
type (
	ClientTransport = clientTransport
	ServerTransport = serverTransport
)

// Streams opens streams for DialBy.
type Streams func(ctx context.Context, server string) (ClientTransport, error)

func (f Streams) connect(ctx context.Context, server string) (clientTransport, error) {
	return f(ctx, server)
}

func (f Streams) abandon(string) {}

func (f Streams) close() error { return nil }

// Network opens streams over connections, for DialOn.
type Network struct {
	Streams
	Abandon func(server string) // has the next stream to a server use another connection
}

func (n Network) abandon(server string) { n.Abandon(server) }

// DialBy is Dial over streams of the test.
func DialBy(ctx context.Context, f Streams, servers []string, cfg DialConfig) (*actors.Locks, error) {
	return dialBy(ctx, f, servers, cfg)
}

// DialOn is DialBy on a system of actors, which ends with the locks, and by a clock.
func DialOn(ctx context.Context, system *host.System, clock *zkbridge.Clock, n Network, servers []string, cfg DialConfig) (*actors.Locks, error) {
	return dialOn(ctx, system, clock, n, servers, cfg)
}

// Connect serves a stream of the test.
func (s *LockServer) Connect(t ServerTransport, name string) error {
	return s.connect(t, Peer{Name: name})
}

// ChangeSession has the server hear of a state of its ZooKeeper session.
func (s *LockServer) ChangeSession(to *messages.SessionChanged) { sessionWatch{s}.Tell(to) }

// FailClient has the actor of a client panic, whose number it is.
func (s *LockServer) FailClient(number uint64) {
	s.clientsAfter(number - 1)[0].self.Tell(frameReceived{})
}

var _ = messages.Reason_CLOSED

// ClientsByAnswer has an answer of Clients have so many clients at most, until the result is called.
func ClientsByAnswer(n int) (restore func()) {
	before := maxClientsOfAnswer
	maxClientsOfAnswer = n
	return func() { maxClientsOfAnswer = before }
}

// TakesIn reports whether the other end makes the messages of a frame, which is read into f: there are not too
// many.
func TakesIn(frame []byte, f proto.Message) bool {
	return countObjects(frame, f.ProtoReflect().Descriptor(), maxFrameObjects) >= 0
}
