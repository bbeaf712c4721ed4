package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

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
	g := grpc.NewServer(grpc.Creds(c), grpc.ForceServerCodecV2(newFrameCodec(s.turns)), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.MaxConcurrentStreams(1000),
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

// Serve is grpc.Server.Serve with bounds: MaxClients and the limit of open files bound all connections,
// and MaxClientsPerPeer bounds the connections of one address. The addresses begin their handshakes in turn.
func (g *GRPCServer) Serve(l net.Listener) error {
	cfg := &g.server.cfg
	all, perAddress := maxConnections(cfg.MaxClients, cfg.MaxClientsPerPeer, openFiles())
	return g.Server.Serve(newListener(l, all, perAddress, func(address string, full bool) {
		if full {
			g.server.counts.countRefusal(LimitConnections)
			g.server.warn("lock server refuses a connection: it has as many as it takes", "address", address, "connections", all,
				"do", "raise the limit of open files and MaxClients, or look at the clients")
			return
		}
		g.server.counts.countRefusal(LimitConnectionsPerAddress)
		g.server.warn("lock server refuses a connection: its address has as many as one may have", "address", address, "connections", perAddress,
			"do", "look at the clients at the address, or raise MaxClientsPerPeer and the limit of open files")
	}))
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
