package remote_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// serveTLS runs a lock server with TLS until the test ends, and returns its address.
func serveTLS(t testing.TB, zk string, secured *tls.Config, cfg remote.ServerConfig) string {
	t.Helper()
	locks, err := actors.Connect(t.Context(), zk, actors.Config{OmitHolder: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() })
	s, err := remote.NewServer(locks, cfg)
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.GRPC(secured)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go g.Serve(l)
	t.Cleanup(func() {
		s.Close()
		g.Stop()
	})
	return strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1)
}

// withNames has a certificate of a client have these names.
func withNames(a *zktest.Authority, common string, dns []string, uris ...string) tls.Certificate {
	return a.IssueChanged(common, func(c *x509.Certificate) {
		c.DNSNames = dns
		for _, text := range uris {
			u, _ := url.Parse(text)
			c.URIs = append(c.URIs, u)
		}
	})
}

// The identity of a client is the URI of its certificate, else the DNS name, else the common name: to
// Allow, and in its nodes. A certificate that nobody has verified gives none.
func TestIdentity(t *testing.T) {
	t.Parallel()
	zk := zktest.Embedded(t)
	a := zktest.NewAuthority(t)
	for _, c := range []struct {
		name     string
		cert     tls.Certificate
		verified tls.ClientAuthType
		verifies bool
		want     string
		names    int
	}{
		{"URI", withNames(a, "cn", []string{"dns"}, "spiffe://a/billing", "spiffe://a/other"), tls.RequireAndVerifyClientCert, false, "spiffe://a/billing", 4},
		{"URI alone", withNames(a, "", nil, "spiffe://a/backup"), tls.RequireAndVerifyClientCert, false, "spiffe://a/backup", 1},
		{"DNS", withNames(a, "cn", []string{"dns", "more"}), tls.RequireAndVerifyClientCert, false, "dns", 3},
		{"common", withNames(a, "cn", nil), tls.VerifyClientCertIfGiven, false, "cn", 1},
		{"none", withNames(a, "", nil), tls.RequireAndVerifyClientCert, false, "", 0},
		{"unverified", withNames(zktest.NewAuthority(t), "cn", nil, "spiffe://a/root"), tls.RequireAnyClientCert, false, "", 0},
		{"verified by the program", withNames(a, "cn", nil, "spiffe://a/billing"), tls.RequireAnyClientCert, true, "spiffe://a/billing", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			secured := &tls.Config{Certificates: []tls.Certificate{a.Issue("server")}, ClientCAs: a.Pool(), ClientAuth: c.verified}
			if c.verifies {
				secured.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { return nil } // that of a test verifies nothing
			}
			var mu sync.Mutex
			var seen remote.Peer
			addr := serveTLS(t, zk.Addr(), secured, remote.ServerConfig{Allow: func(p remote.Peer, _ string, _ remote.Verb) error {
				mu.Lock()
				defer mu.Unlock()
				seen = p
				return nil
			}})
			locks, err := remote.Dial(t.Context(), addr, remote.DialConfig{Config: actors.Config{TLS: &tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{c.cert}}}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { locks.Close() })
			mu1 := locks.Mutex(zk.Path(t))
			lockOf(t, mu1)
			all, err := mu1.Participants(t.Context())
			if err != nil || len(all) != 1 || all[0].Identity != c.want || all[0].Program == "" {
				t.Errorf("%+v, %v; want the identity %q", all, err, c.want)
			}
			mu.Lock()
			defer mu.Unlock()
			if seen.Name != c.want || len(seen.Names) != c.names || seen.Address == "" {
				t.Errorf("Allow has seen %+v; want %q", seen, c.want)
			}
		})
	}
}

// A client whose certificate names another URI cannot take over or end a lease, though the common name
// is the same: with SPIFFE it is empty.
func TestLeaseIsBoundToIdentity(t *testing.T) {
	zk := zktest.Embedded(t)
	a := zktest.NewAuthority(t)
	addr := serveTLS(t, zk.Addr(), &tls.Config{Certificates: []tls.Certificate{a.Issue("server")}, ClientCAs: a.Pool(), ClientAuth: tls.RequireAndVerifyClientCert}, remote.ServerConfig{})
	welcome := func(uri string, hello *messages.Hello) *messages.Welcome {
		t.Helper()
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{withNames(a, "", nil, uri)}})))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/actorlock.LockServer/Connect")
		if err != nil {
			t.Fatal(err)
		}
		stream := grpc.GenericClientStream[messages.ClientFrame, messages.ServerFrame]{ClientStream: s}
		hello.Version = 1
		if err := stream.Send(&messages.ClientFrame{Hello: hello}); err != nil {
			t.Fatal(err)
		}
		frame, err := stream.Recv()
		if err != nil || frame.Welcome == nil {
			t.Fatalf("%v, %v", frame, err)
		}
		return frame.Welcome
	}
	mine := welcome("spiffe://a/mine", &messages.Hello{})
	theirs := welcome("spiffe://a/theirs", &messages.Hello{Lease: mine.Lease, Incarnation: mine.Incarnation})
	if theirs.Resumed || theirs.Lease == mine.Lease {
		t.Errorf("another identity has taken the lease over: %v", theirs)
	}
	welcome("spiffe://a/theirs", &messages.Hello{LetGo: mine.Lease, Incarnation: mine.Incarnation})
	if again := welcome("spiffe://a/mine", &messages.Hello{Lease: mine.Lease, Incarnation: mine.Incarnation}); !again.Resumed || again.Lease != mine.Lease {
		t.Errorf("the client cannot resume its lease: %v", again)
	}
}
