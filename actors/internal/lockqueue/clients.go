package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

import "github.com/actorlock/actorlock/actors/queue"

// clients is a set of kinds of clients, which the names of their contenders tell apart.
type clients uint8

const (
	// curators are clients of Apache Curator.
	curators clients = 1 << iota
	// unknownToCurators are clients for which Curator's do not wait. Curator does not find the
	// number in their names, and compares the names as text.
	unknownToCurators
)

// clientOf returns the kind of client that has made a contender's name. It returns 0 for other
// clients, such as this library.
func clientOf(name string) clients {
	switch marker, _ := queue.Marker(name); marker {
	case queue.KazooMarker, queue.KazooReadMarker, queue.RecipesMarker:
		return unknownToCurators
	}
	// Curator's UUIDs are random, of version 4. Those of this library have version 8.
	if id, ok := queue.UUID(name); ok && id[6]>>4 == 4 {
		return curators
	}
	return 0
}

// noteClient notes which client has made the name of a contender of another process, and with how
// many permits.
func (s *State) noteClient(name string) {
	if here := int(s.lastSerial >> permitsShift); here != 0 {
		if other := PermitsOf(name); other != 0 && other != here {
			f := s.add(requests.ReportPermits, 0)
			f.Node, f.Permits = name, other
		}
	}
	const both = curators | unknownToCurators
	if s.clients == both {
		return
	}
	if s.clients |= clientOf(name); s.clients == both {
		s.add(requests.ReportClients, 0)
	}
}
