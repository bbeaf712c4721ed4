package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// The streams as gRPC has them: one method with a stream in each direction. The generator of this
// repository makes actors of services, not streams, so the description of the service is here.
const (
	grpcService = "actorlock.LockServer"
	grpcMethod  = "/" + grpcService + "/Connect"
)

var connectStream = grpc.StreamDesc{StreamName: "Connect", ServerStreams: true, ClientStreams: true}

// maxMessage bounds the bytes of a frame: a message of the largest node data fits.
const maxMessage = 2 << 20

// flowWindow is how many bytes of a stream may be under way. Windows of a fixed size need no
// pings: to size its own windows, gRPC sends one for nearly each frame that a stream receives.
const flowWindow = 256 << 10

// ---- the client

// grpcDialer has a connection for each server.
type grpcDialer struct {
	credentials credentials.TransportCredentials
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
	d := &grpcDialer{credentials: insecure.NewCredentials(), hint: "it may want TLS", dial: dial, conns: map[string]*grpcConn{}}
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

// conn returns the connection for a stream, which ends with ctx.
func (d *grpcDialer) conn(ctx context.Context, server string) (*grpcConn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
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
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
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

// ---- the server

// GRPCServer is the gRPC server of a LockServer.
type GRPCServer struct {
	*grpc.Server
	server *LockServer
}

// GRPC returns a gRPC server of s, with the standard health service. secured decides which
// clients may connect. nil means all, without TLS, for networks that are secured otherwise, if
// ServerConfig.Insecure is set; without it the error is ErrInvalid. Serve blocks until Stop, which
// comes after the Close of s.
func (s *LockServer) GRPC(secured *tls.Config) (*GRPCServer, error) {
	c, verifies := insecure.NewCredentials(), false
	switch {
	case secured == nil && !s.cfg.Insecure:
		return nil, fmt.Errorf("%w: the TLS configuration is nil: give the certificates, or set ServerConfig.Insecure", actors.ErrInvalid)
	case secured != nil && s.cfg.Insecure:
		return nil, fmt.Errorf("%w: a TLS configuration is given, and ServerConfig.Insecure is set too: choose one", actors.ErrInvalid)
	case secured != nil:
		c = credentials.NewTLS(secured)
		verifies = secured.VerifyPeerCertificate != nil || secured.VerifyConnection != nil || secured.GetConfigForClient != nil
	}
	g := grpc.NewServer(grpc.Creds(c), grpc.ForceServerCodecV2(newFrameCodec()), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.MaxConcurrentStreams(1000),
		grpc.StaticStreamWindowSize(flowWindow), grpc.StaticConnWindowSize(flowWindow),
		grpc.ConnectionTimeout(10*time.Second), grpc.WriteBufferSize(16<<10), grpc.ReadBufferSize(16<<10),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}))
	g.RegisterService(&grpc.ServiceDesc{ServiceName: grpcService, HandlerType: (*any)(nil), Metadata: "actorlock/remote.proto",
		Streams: []grpc.StreamDesc{{StreamName: connectStream.StreamName, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error {
				return s.connect(&grpc.GenericServerStream[messages.ClientFrame, messages.ServerFrame]{ServerStream: stream}, peerOf(stream.Context(), verifies))
			}}}}, s)
	h := health.NewServer()
	s.health.Store(h)
	s.updateHealth()
	healthpb.RegisterHealthServer(g, h)
	return &GRPCServer{g, s}, nil
}

// Serving reports whether the server takes clients, and its session with ZooKeeper is connected, as the
// health service does. It does not block.
func (s *LockServer) Serving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.suspended.Load()
	return !s.draining && !s.closed && state != nil && state.Connected
}

// updateHealth says to the health service whether the server takes clients.
func (s *LockServer) updateHealth() {
	h := s.health.Load()
	if h == nil {
		return
	}
	s.mu.Lock()
	ending := s.draining || s.closed
	s.mu.Unlock()
	if ending {
		h.Shutdown() // for good: a change of the session that comes at this moment changes nothing
		return
	}
	status := healthpb.HealthCheckResponse_SERVING
	if state := s.suspended.Load(); state == nil || !state.Connected {
		status = healthpb.HealthCheckResponse_NOT_SERVING
	}
	h.SetServingStatus("", status)
	h.SetServingStatus(grpcService, status)
}

// peerOf returns the client that has opened a stream. verifies reports that the program has verified
// the certificate; otherwise package tls says whether it has.
func peerOf(ctx context.Context, verifies bool) (p Peer) {
	from, is := peer.FromContext(ctx)
	if !is {
		return p
	}
	p.Address = from.Addr.String()
	info, is := from.AuthInfo.(credentials.TLSInfo)
	if is && len(info.State.PeerCertificates) > 0 && (verifies || len(info.State.VerifiedChains) > 0) {
		if p.Names = namesOf(info.State.PeerCertificates[0]); len(p.Names) > 0 {
			p.Name = p.Names[0]
		}
	}
	return p
}

// namesOf returns the names in a certificate. The first is the identity.
func namesOf(c *x509.Certificate) (names []string) {
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	names = append(names, c.DNSNames...)
	if name := c.Subject.CommonName; name != "" {
		names = append(names, name)
	}
	return names
}
