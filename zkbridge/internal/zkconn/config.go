package zkconn

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// Config is what a connection needs to know. Every field is set.
type Config struct {
	Auth    []Credentials
	TLS     *tls.Config // nil: connections are not secured
	Servers []string    // host:port each
	Root    Chroot
	ACL     []zk.ACL // of the nodes that the client makes

	MaxReply       int // bytes, 0 without limit
	SessionTimeout time.Duration
	ConnectTimeout time.Duration
	Margin         time.Duration
	Dial           func(ctx context.Context, network, address string) (net.Conn, error) // nil: the resolver's
	Log            *slog.Logger

	Resolver   *resolver
	Containers optionalRequest // creating them
	ephemerals optionalRequest // listing those of the session
}
