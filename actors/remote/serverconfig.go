package remote

import (
	"log/slog"
	"time"
)

// ServerConfig adjusts a LockServer. Its zero value works.
type ServerConfig struct {
	// Lease is the longest time for which a client's locks are valid without another answer
	// of the server, MinLease at least. 0 means 30 s. The deadline of the server's ZooKeeper session
	// bounds it, too.
	Lease time.Duration
	// Allow decides what a client may do; nil allows everything. It must not block, and several
	// goroutines call it at one time. Its error is the detail of the refusal, with ErrNoAuth. It is
	// asked for each path that the client touches, after the path was checked: for the path of a lock; for
	// path/locks and path/leases, too, of a semaphore, whose nodes are there; for the node of a
	// number of permits; for the members of a multi-lock. A node that is named by its own path may
	// be of the lock at its directory, or of a semaphore or kazoo's semaphore that has such a
	// directory: Allow is asked for all of these. FindLocks returns what the client may inspect.
	// Clients asks for VerbInspect of "/". What it panics about is refused with ErrInternal, and a line of the
	// log has the panic; the client keeps what it has.
	Allow func(client Peer, path string, verb Verb) error
	// Changed is called when a client's call that changes something is answered, with the error of the
	// answer, but not when Allow refuses the call. It must not block, and several goroutines call it at
	// one time. A line of the log has its panic, and the client gets its answer. It may be nil.
	Changed func(client Peer, change Change, err error)
	// MaxClients bounds the clients at one time. 0 means 20,000. A client that means harm can have a
	// server keep some 120 MB, and its process grew by 240 MB in a test: 8 MiB of its requests' data and
	// 20 MB of the requests themselves, 32 MiB that it has not confirmed, 16 MiB of answers that wait, and
	// five frames of 7 MB that are not handled yet. So let in those only that you trust.
	MaxClients int
	// MaxClientsPerPeer bounds the clients of one identity (Peer.Name) at one network address, and the
	// connections of one address. The addresses of an IPv6 network of 64 bits count as one. 0 means a
	// quarter of MaxClients, or 100 if that is more. Raise it where a proxy stands in front of the server.
	MaxClientsPerPeer int
	// MaxRequestsPerClient bounds the requests of one client that wait or hold, by what they cost: a
	// request counts as often as it needs nodes, one for each permit and one for each member of a
	// multi-lock; a semaphore's request queue counts, too. 0 means 10,000. Those of all clients of a peer
	// (see MaxClientsPerPeer) may cost four times as much; beyond that a client of it has a hundredth.
	MaxRequestsPerClient int
	// MaxDataPerClient bounds the bytes of data in the nodes of one client's requests that wait or hold.
	// 0 means 8 MiB. All clients of a peer may have four times as much; beyond that a client of it has a
	// hundredth.
	MaxDataPerClient int
	// MaxQuestionsPerClient bounds the questions of one client that are open, as of Inspect and Observe.
	// 0 means 64.
	MaxQuestionsPerClient int
	// Logger gets a line for each client that ends with locks, and for misuse. nil means slog.Default.
	Logger *slog.Logger
	// Insecure has GRPC serve without TLS.
	Insecure bool
}

// Peer is a client as the network and its certificate show it.
type Peer struct {
	// Name is the identity of the client: the first URI of its certificate, as SPIFFE has it; else the
	// first DNS name; else the common name. It is "" without a certificate that the TLS configuration
	// has verified. The client's lease is bound to it, and lines of the log and the records in the
	// client's nodes have it.
	Name string
	// Names are all URIs and DNS names of the certificate, and then its common name, if it has one.
	Names []string
	// Address is the network address of the client.
	Address string
}

// Verb is what a client does with a lock.
type Verb string

// The verbs.
const (
	// VerbAcquire: the client asks for the lock.
	VerbAcquire Verb = "acquire"
	// VerbInspect: the client asks for the contenders of a lock.
	VerbInspect Verb = "inspect"
	// VerbChange: the client asks another client to release, deletes its node after a grace, or
	// changes a number of shared permits.
	VerbChange Verb = "change"
)

// Change is something that a client has had the server do, besides requests for locks.
type Change struct {
	// Kind is "revoke" for a node whose owner is asked to release, or which is deleted after a grace;
	// "revoke-holders" for those of a lock; "set-count" and "try-set-count" for a number of permits.
	Kind string
	// Path is the path of the node, the lock or the number.
	Path string
	// Arguments are the others, as JSON: a grace in nanoseconds, or the number.
	Arguments []byte
}

// MinLease is the shortest ServerConfig.Lease: by a shorter one no client holds for long enough to do
// anything.
const MinLease = 100 * time.Millisecond
