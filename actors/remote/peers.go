package remote

import (
	"context"
	"math"
	"net"
	"net/netip"
	"sync/atomic"
)

// sameAs reports whether a client that comes again has the same identity.
func (p Peer) sameAs(other Peer) bool { return p.Name == other.Name }

// peerKey is the key of the Peer in the context of a client's request.
type peerKey struct{}

// ClientOf returns the client of a lock server whose request it is, from the context that the Monitor of
// the server's Locks gets (actors.Config.Monitor). It is false for a request of the server's process. It
// does not block.
func ClientOf(ctx context.Context) (Peer, bool) {
	p, is := ctx.Value(peerKey{}).(Peer)
	return p, is
}

// source is where clients come from whose number is bounded together: an identity at one address.
type source struct{ name, address string }

func (p Peer) source() source { return source{p.Name, addressOf(p.Address)} }

// A client that has not confirmed so many messages, or so many bytes, or that does not read so many
// frames, is behind. It is cut off, its lease is not renewed, and what it has not confirmed is dropped.
const (
	maxBehind       = 1 << 16
	maxBytesBehind  = 32 << 20
	maxFramesBehind = 1 << 8
)

// peerGroup is what a source has at the server.
type peerGroup struct {
	clients               int          // guarded by the server
	pending, pendingBytes atomic.Int64 // messages that the clients have not confirmed
	nodes, data           atomic.Int64 // what their requests need, and its bytes of data
}

// The clients of a source together may have so much unconfirmed. Beyond that a client of it is behind if it
// has more than a few messages unconfirmed.
const (
	maxGroupBehind      = 4 * maxBehind
	maxGroupBytesBehind = 4 * maxBytesBehind
	fewBehind           = 64
)

// isBehind reports whether a client with so many unconfirmed messages is behind because of all of the source.
func (g *peerGroup) isBehind(messages int) bool {
	return messages > fewBehind && (g.pending.Load() > maxGroupBehind || g.pendingBytes.Load() > maxGroupBytesBehind)
}

// The requests of the clients of a source together may need so many times what those of one client may.
// Beyond that a client of it has a hundredth of its limits.
const (
	maxGroupRequests = 4
	fewRequestsPart  = 100
)

// addressOf returns what the network address of one machine is known by: its IP address without the
// port. A machine has all addresses of an IPv6 network of 64 bits, mostly.
func addressOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap().WithZone(""); ip.Is6() {
		network, _ := ip.Prefix(64)
		return network.String()
	}
	return ip.String()
}

// keptFiles is how many files a server keeps back from its clients: for the connections to ZooKeeper,
// and what else the program has open.
const keptFiles = 32

// maxConnections returns how many connections a server with so many clients and open files may have, and
// how many of them one address may have. A client of ours has one connection, and two for a moment.
func maxConnections(maxClients, maxClientsPerPeer int, files uint64) (all, perAddress int) {
	all = maxClients + maxClients/4 + 16
	if most := max(files, keptFiles+2) - keptFiles; uint64(all) > most {
		all = int(most)
	}
	perAddress = min(maxClientsPerPeer+maxClientsPerPeer/4+16, all)
	if maxClientsPerPeer < maxClients {
		perAddress = min(perAddress, (all+1)/2) // some are left for others
	}
	return all, perAddress
}

// unlimitedFiles is the number of open files where the system does not bound them.
const unlimitedFiles = math.MaxInt32
