package remote

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/health"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/lease"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// LockServer serves the locks of a process to other processes, which need no ZooKeeper: see Dial.
type LockServer struct {
	cfg         ServerConfig
	locks       *actors.Locks
	manager     *manager.Manager
	log         *slog.Logger
	incarnation uint64
	began       time.Duration // by the clock of the session

	mu       sync.Mutex
	clients  map[uint64]*servedClient
	bySource map[source]*peerGroup
	last     uint64 // client
	draining bool
	closed   bool
	allEnded chan struct{} // closed when there is no client any more, once closed or draining is set

	turns  frameTurns
	lines  logLimit
	counts counters

	suspended atomic.Pointer[messages.State] // of the ZooKeeper session
	health    atomic.Pointer[health.Server]  // nil before GRPC
}

// servedClient is the server's end of a client, for the life of one lease. Its actor takes the
// frames of the client's streams, and the messages of the locks to its requests.
type servedClient struct {
	server *LockServer
	number uint64 // of the client, for people and for the names of its owners
	id     uint64 // of the lease; others must not guess it, since its bearer may end the lease
	peer   Peer
	group  *peerGroup
	name   string
	ctx    context.Context // of its requests, with the peer
	self   *host.Ref

	// Only the actor uses these.
	lease     *lease.ServerEnd
	renewals  rate
	epoch     uint64 // of the ZooKeeper session that the lease relies on; 0 before the first answer or grant
	stream    *serverStream
	messages  numbered[*messages.ServerMessage]
	answers   answerQueue
	requests  map[uint64]*servedRequest
	nodes     int                       // of requests
	data      int                       // bytes of data in the nodes of requests
	record    struct{ of, with []byte } // the last data of a node, without and with the client's identity
	deferred  deferred                  // of requests
	questions map[uint64]*servedQuestion
	reading   *zkbridge.ReadLimit           // of all questions
	counted   struct{ messages, bytes int } // of messages, as the server counts them
	timer     *time.Timer                   // until the lease may have ended
	draining  bool
	behind    bool // for good: the lease ends, and the client is sent nothing more
	stopped   bool // the actor is about to end
	over      bool // the lease has ended, and the actor waits for the locks' answers and the client's Bye
}

// Messages to the actor.
type (
	attached struct {
		stream *serverStream
		first  *messages.ClientFrame // has a Hello
	}
	detached struct{ stream *serverStream }
	// halfClosed: the client sends nothing more. Behind a Bye it waits for the end of the stream.
	halfClosed    struct{ stream *serverStream }
	frameReceived struct {
		stream *serverStream
		frame  *messages.ClientFrame
	}
	sessionState struct{ state *messages.State }
	leaseTimer   struct{}
	leaseLetGo   struct{}
	drain        struct{}
	renewNoMore  struct{}
	closeDown    struct{}
	// describe asks for the state of the client, which goes into a channel with room for it.
	describe struct{ to chan<- ClientState }
)

// servedRequest is a request of a client. It is the owner that the lock's actor sends messages to,
// which it passes on to the client's actor.
type servedRequest struct {
	client  *servedClient
	number  uint64
	path    string
	recipe  *manager.Recipe
	owner   string // the name that the client has given to the owner
	nodes   int    // that it needs
	acquire *messages.Acquire

	id requests.ID // only the lock's actor uses it

	// Only the client's actor uses these.
	entry    *manager.Entry    // nil while the request waits for a turn
	granted  *messages.Granted // nil before
	released bool              // the client has released
	lost     bool              // the grant is lost, and the client has not confirmed that
	over     bool              // the client needs no answer: it has cancelled, or has the last answer
	awaits   bool              // it needs the last answer all the same
	turn     uint64            // in which it was begun, or in which it ends
	opening  bool              // it is begun, and neither granted nor about to end
	end      any               // the message by which it ends, while that waits for a turn
	ending   bool              // that is sent, and not answered
}

// answered is a message of a lock's actor about a request.
type answered struct {
	request *servedRequest
	message any // of service Owner
	step    uint32
}

// answerTo is an answer to a question of the client, or the end of the answers.
type answerTo struct {
	of     *servedQuestion
	answer *messages.Answer
}

// deferred are the requests of a client that wait for a turn, in their order. The zero value has none.
type deferred struct {
	requests  []*servedRequest
	cancelled int              // of these
	ends      []*servedRequest // that were begun, and are to end
	turn      int              // nodes that the client has asked for a turn for; 0 if it waits for none
	turns     uint64           // so far
	opening   int              // see maxOpening
	ending    int              // nodes of the requests that end since the last turn, and are not answered
}

// turn is the message to the actor that it is the client's turn.
type turn struct{}

// closing is the detail of leases that end with the server.
const closing = "the lock server is about to end"
