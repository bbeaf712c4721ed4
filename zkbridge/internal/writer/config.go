package writer

import (
	"time"

	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// Dependencies are what a writer works with.
type Dependencies struct {
	*zkconn.Settings
	Session *zkconn.SessionConn
	// OnBatch is called with the number of creates and deletes of each batch that is sent.
	OnBatch func(operations int)
}

const (
	// fewInFlight is how many batches from the queue may be in flight beside which another one is
	// sent before it is overdue: the fewer there are, the more each carries. 3 or 4 are best, as
	// measured.
	fewInFlight = 3
	// fewNewInFlight is the same for the lines of directories. A lock in use waits for the server
	// behind them, and three make no more new paths a second than two.
	fewNewInFlight = 2
	// MaxInFlight bounds the batches of either kind that are in flight.
	MaxInFlight = 16
	// MaxSingle bounds the requests in flight that are not part of a batch, and the batches of a
	// writer without a session node. There each create goes alone, since only a request of its own
	// returns its czxid.
	MaxSingle = 29
	// recently is how long after its transaction was sent a Created is recent: see bridge.proto.
	recently = time.Second
)

// New returns a writer without a session node.
func New(epoch Epoch, cfg Dependencies) *Writer {
	return &Writer{epoch: epoch, cfg: cfg, jitter: zkconn.NewJitter(), directories: map[string]*directory{}}
}
