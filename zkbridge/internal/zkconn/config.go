package zkconn

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// Settings configures the connections of all epochs of a bridge. Every exported field without a
// default is set.
type Settings struct {
	Auth    []Credentials
	TLS     *tls.Config // nil: no TLS
	Servers *ServerList
	Root    Chroot
	// RequireChroot has a client not create Root, but fail with ErrNoChroot.
	RequireChroot bool
	ACL           []zk.ACL // of the nodes that the client makes

	MaxReply       int // bytes, 0 without limit
	SessionTimeout time.Duration
	ConnectTimeout time.Duration
	Margin         time.Duration
	Dial           func(ctx context.Context, network, address string) (net.Conn, error) // nil: Resolver dials
	Log            *slog.Logger
	Clock          *Clock // whose times are durations since the bridge was opened

	Resolver *Resolver
	found    findings
}
