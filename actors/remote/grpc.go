package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/actorlock/actorlock/messages"
)

// The streams as gRPC has them: one method with a stream in each direction. The generator of this
// repository makes actors of services, not streams, so the description of the service is here.
const (
	grpcService = "actorlock.LockServer"
	grpcMethod  = "/" + grpcService + "/Connect"
)

var connectStream = grpc.StreamDesc{StreamName: "Connect", ServerStreams: true, ClientStreams: true}

// flowWindow is how many bytes of a stream may be under way. Windows of a fixed size need no
// pings: to size its own windows, gRPC sends one for nearly each frame that a stream receives.
const flowWindow = 256 << 10

// ---- the client

// grpcDialer has a connection for each server.
type grpcDialer struct {
	credentials credentials.TransportCredentials
	codec       frameCodec
	hint        string                                                               // why a server may hang up on these credentials
	dial        func(ctx context.Context, network, address string) (net.Conn, error) // nil: as gRPC does

	mu    sync.Mutex
	conns map[string]*grpcConn // for the next streams
}

// grpcConn is a connection, until it is abandoned and its last stream has ended.
type grpcConn struct {
	*grpc.ClientConn
	streams   int
	abandoned bool
}

func newGRPCDialer(secured *tls.Config, dial func(ctx context.Context, network, address string) (net.Conn, error)) *grpcDialer {
	d := &grpcDialer{credentials: insecure.NewCredentials(), codec: newFrameCodec(newFrameTurns()), hint: "it may want TLS", dial: dial, conns: map[string]*grpcConn{}}
	if secured != nil {
		d.credentials = credentials.NewTLS(secured)
		d.hint = "it may want a certificate of the client"
		if len(secured.Certificates) > 0 || secured.GetClientCertificate != nil {
			d.hint = "it may not trust the certificate of the client"
		}
	}
	return d
}

func (d *grpcDialer) connect(ctx context.Context, server string) (clientTransport, error) {
	conn, err := d.conn(ctx, server)
	if err != nil {
		return nil, err
	}
	conn.ResetConnectBackoff() // the session has pauses of its own
	stream, err := conn.NewStream(ctx, &connectStream, grpcMethod)
	if err != nil {
		return nil, d.explain(err)
	}
	return &grpcStream{GenericClientStream: grpc.GenericClientStream[messages.ClientFrame, messages.ServerFrame]{ClientStream: stream}, dialer: d}, nil
}

// grpcStream explains why a server has hung up before its first frame.
type grpcStream struct {
	grpc.GenericClientStream[messages.ClientFrame, messages.ServerFrame]
	dialer *grpcDialer
	heard  bool
}

// Recv implements clientTransport.
func (s *grpcStream) Recv() (*messages.ServerFrame, error) {
	frame, err := s.GenericClientStream.Recv()
	if err != nil && !s.heard {
		err = s.dialer.explain(err)
	}
	s.heard = true
	return frame, err
}

// explain adds to the error of a stream why the server may have hung up. A server that refuses a
// certificate says so, but the client may hear of the end of the connection alone.
func (d *grpcDialer) explain(err error) error {
	text := status.Convert(err).Message()
	if status.Code(err) != codes.Unavailable || strings.Contains(text, "while dialing") || strings.Contains(text, "handshake failed") {
		return err
	}
	return fmt.Errorf("%w: the server hangs up: %s", err, d.hint)
}

// conn returns the connection for a stream, which ends with ctx. An ended ctx gets none: behind close, which ctx
// ends before, nothing would close it.
func (d *grpcDialer) conn(ctx context.Context, server string) (*grpcConn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := d.conns[server]
	if c == nil {
		made, err := d.newConn(server)
		if err != nil {
			return nil, err
		}
		c = &grpcConn{ClientConn: made}
		d.conns[server] = c
	}
	c.streams++
	context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if c.streams--; c.streams == 0 && c.abandoned {
			c.Close()
		}
	})
	return c, nil
}

// abandon implements dialer. The streams of the connection may go on: they end leases.
func (d *grpcDialer) abandon(server string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.conns[server]
	if c == nil {
		return
	}
	delete(d.conns, server)
	if c.abandoned = true; c.streams == 0 {
		c.Close()
	}
}

func (d *grpcDialer) newConn(server string) (*grpc.ClientConn, error) {
	options := []grpc.DialOption{grpc.WithTransportCredentials(d.credentials), grpc.WithDisableServiceConfig(),
		grpc.WithStaticStreamWindowSize(flowWindow), grpc.WithStaticConnWindowSize(flowWindow),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(d.codec), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second})}
	if d.dial != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return d.dial(ctx, "tcp", address) }))
	}
	return grpc.NewClient("passthrough:///"+server, options...)
}

func (d *grpcDialer) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all error
	for _, c := range d.conns {
		all = errors.Join(all, c.Close())
	}
	clear(d.conns)
	return all
}
