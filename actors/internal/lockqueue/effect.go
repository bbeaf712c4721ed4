package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// Effect is a requests.Effect of a State, with the fields of those for the bridge and for the lock's
// actor.
type Effect struct {
	requests.Effect
	Serial    uint64
	Nodes     []string
	WithData  bool
	Since     int64
	Guard     string
	After     string
	Watch     bool
	ListAfter bool
	// DirectoryExists reports, of CreateNode, that a contender of this process is in the directory.
	// If it is false, the directory may be missing. The bridge then sends later creates in it only
	// in the same transaction or after the answer to this one, so that the creates keep their
	// order. (A deletion of a node of the directory, earlier in the same transaction, shows the
	// bridge that the directory exists.)
	DirectoryExists bool
	// DirectorySeen reports, of CreateNode, that this process has seen the directory in this
	// session.
	DirectorySeen bool
	Data          []byte
	Owner         string
	Permits       int
}
