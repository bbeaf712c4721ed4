package remote

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// clientTransport carries the frames of one stream, at the client. One goroutine calls Send, and one
// Recv. They block.
type clientTransport interface {
	Send(*messages.ClientFrame) error
	Recv() (*messages.ServerFrame, error)
	// CloseSend is called behind the last Send.
	CloseSend() error
}

// serverTransport carries the frames of one stream, at the server, until connect returns.
type serverTransport interface {
	Send(*messages.ServerFrame) error
	Recv() (*messages.ClientFrame, error)
}

// dialer opens streams.
type dialer interface {
	// connect opens a stream to a server, which ends with ctx.
	connect(ctx context.Context, server string) (clientTransport, error)
	// abandon has the next stream to a server use another connection: the present one may be dead.
	abandon(server string)
	close() error
}

// defaultPort is the port of a lock server.
const defaultPort = "7400"

// parseServers returns the servers of a list such as "lock1:7400,lock2".
func parseServers(list string) ([]string, error) {
	var servers []string
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		host, port, err := net.SplitHostPort(item)
		if err != nil {
			host, port = strings.Trim(item, "[]"), defaultPort
		}
		number, numberErr := strconv.ParseUint(port, 10, 16)
		if host == "" || numberErr != nil || number == 0 || strings.ContainsAny(host, "/ ") || err != nil && strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return nil, fmt.Errorf("%w: lock server %q in %q: it must be host:port, with a port from 1 to 65535, or a host, and commas between", actors.ErrInvalid, item, list)
		}
		if server := net.JoinHostPort(host, port); !slices.Contains(servers, server) {
			servers = append(servers, server)
		}
	}
	return servers, nil
}
