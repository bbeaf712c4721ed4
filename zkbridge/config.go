package zkbridge

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// Config configures a bridge. Only Servers is needed.
type Config struct {
	// Servers lists the ensemble as "host:port,host:port". The default port is 2181; IPv6 addresses
	// stand in brackets. The bridge resolves names anew at each attempt to connect; while the name
	// servers do not answer, their last answer counts. Each attempt begins with another address of
	// a name. A path behind the list, as in "h1,h2/app", is a chroot: all other paths are below it
	// and do not show it. The bridge creates the chroot, and missing directories above it, together
	// with the first directory in it; the log says so at level WARN, because a wrong chroot has
	// locks of its own. Blanks around a server do not count.
	Servers string

	// RequireChroot has the bridge never create the chroot of Servers. If it is missing,
	// [Bridge.Connected] fails with [ErrNoChroot]; if it is deleted later, creates in it fail with
	// UNAVAILABLE. Without a chroot it means nothing.
	RequireChroot bool

	// SessionTimeout is how long ZooKeeper keeps the session of a silent process, and with it the
	// locks. 0 means 20 s; less than 100 ms is refused. A server that grants another timeout makes
	// [Bridge.Connected] fail with [ErrSessionTimeout].
	SessionTimeout time.Duration

	// ConnectTimeout bounds each attempt to connect to one server, the handshake included. The
	// first attempt ends after a second. After each attempt without an answer the next one may take
	// twice as long, up to ConnectTimeout. 0 means a third of SessionTimeout shared between the
	// servers, from about 1 s to 10 s.
	ConnectTimeout time.Duration

	// Margin is how much earlier than ZooKeeper can expire the session the bridge takes it for
	// lost: SessionTimeout - Margin after the last message that ZooKeeper has answered was sent, or
	// up to a third of SessionTimeout before that if few messages are sent. For an ensemble it
	// should be at least (syncLimit + 1/2) * tickTime, 11 s with ZooKeeper's defaults: see the
	// package documentation. 0 means a fifth of SessionTimeout; more than half of it is refused.
	Margin time.Duration

	// Dial opens connections to "host:port", and resolves the name itself. It must return when ctx
	// ends. nil means net.Dialer, to one address after the other.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// TLS secures the connections that Dial opens. An empty ServerName means the server's name in
	// Servers. With a certificate of its own the bridge authenticates by it (x509). nil means no
	// TLS.
	TLS *tls.Config

	// Auth holds the credentials that the bridge sends to each server before any request.
	// Credentials that a server refuses make [Bridge.Connected] fail with NO_AUTH. Later they make
	// the session LOST, and the bridge tries another one from time to time.
	Auth []Auth

	// ACL is the ACL of the nodes and directories that the bridge creates. nil grants all rights to
	// all clients; see [CreatorAll]. All processes that share a lock need the rights READ, CREATE
	// and DELETE in its directory, and READ on its nodes. Each session creates a node of its own
	// below /actorlock. Without the right to do so it creates contenders one by one, which is
	// slower.
	ACL []zk.ACL

	// MaxReply is how many bytes an answer of ZooKeeper may have. The bridge does not keep a larger
	// answer in memory, and the request fails with LIMIT_EXCEEDED. 0 means 4 MiB, enough for about
	// 80,000 nodes in a directory; less than 1 MiB is refused.
	MaxReply int

	// MaxOutstanding is how many requests may wait for an answer. A request over the limit fails at
	// once with LIMIT_EXCEEDED, unless it only deletes nodes. 0 means no limit.
	MaxOutstanding int

	// SuspendedFor returns for how long the machine was suspended since some instant; timers and
	// Go's monotonic clock stand still meanwhile. It is called once in a millisecond at most. nil
	// asks the operating system. Tests set it.
	SuspendedFor func() time.Duration

	// Logger logs session changes, and attempts to connect at debug level. nil means no log. A
	// Logger that blocks delays the bridge by 100 ms at most, see [host.BoundLogger].
	Logger *slog.Logger
}

// The limits of a Config. The longest session timeout is the protocol's.
const (
	defaultSessionTimeout = 20 * time.Second
	minSessionTimeout     = 100 * time.Millisecond
	maxSessionTimeout     = math.MaxInt32 * time.Millisecond
	minConnectTimeout     = 10 * time.Millisecond
	defaultPort           = "2181"

	// Not less than the data of one node, nor than the answer to the largest transaction.
	minMaxReply     = 1 << 20
	defaultMaxReply = 4 << 20
)

func (cfg Config) check() (*settings, error) {
	servers, root, err := parseServers(cfg.Servers)
	if err != nil {
		return nil, fmt.Errorf("zkbridge: Servers: %w", err)
	}
	s := &settings{maxOutstanding: cfg.MaxOutstanding}
	s.Settings = zkconn.Settings{Servers: zkconn.NewServerList(servers), Root: root, RequireChroot: cfg.RequireChroot, SessionTimeout: cfg.SessionTimeout, ConnectTimeout: cfg.ConnectTimeout,
		Margin: cfg.Margin, Dial: cfg.Dial, TLS: cfg.TLS.Clone(), ACL: slices.Clone(cfg.ACL), MaxReply: cfg.MaxReply, Log: cfg.Logger,
		Resolver: zkconn.NewResolver(), Clock: zkconn.NewClock(cfg.SuspendedFor)}
	for _, a := range cfg.Auth {
		s.Auth = append(s.Auth, zkconn.Credentials{Scheme: a.Scheme, Credential: a.Credential})
	}
	s.fillIn()
	return s, cmp.Or(s.checkTimes(), s.checkLimits(), checkAuth(cfg.Auth), cfg.checkACL())
}

func (s *settings) fillIn() {
	s.SessionTimeout = cmp.Or(s.SessionTimeout, defaultSessionTimeout)
	third := s.SessionTimeout / 3
	perServer := max(third/time.Duration(len(s.Servers.All())), min(time.Second, third))
	s.ConnectTimeout = cmp.Or(s.ConnectTimeout, min(perServer, 10*time.Second))
	s.Margin = cmp.Or(s.Margin, s.SessionTimeout/5)
	s.MaxReply = cmp.Or(s.MaxReply, defaultMaxReply)
	s.Log = host.BoundLogger(s.Log)
	if s.ACL == nil {
		s.ACL = zk.WorldACL(zk.PermAll)
	}
}

func (s *settings) checkTimes() error {
	const wrong = "zkbridge: %s is %v: it must be from %v to %v, or 0 for the default"
	switch {
	case s.SessionTimeout < minSessionTimeout || s.SessionTimeout > maxSessionTimeout:
		return fmt.Errorf(wrong, "SessionTimeout", s.SessionTimeout, minSessionTimeout, maxSessionTimeout)
	case s.ConnectTimeout < minConnectTimeout || s.ConnectTimeout > maxSessionTimeout:
		return fmt.Errorf(wrong, "ConnectTimeout", s.ConnectTimeout, minConnectTimeout, maxSessionTimeout)
	case s.Margin < time.Millisecond || s.Margin > s.SessionTimeout/2:
		return fmt.Errorf(wrong, "Margin", s.Margin, time.Millisecond, s.SessionTimeout/2)
	}
	s.SessionTimeout = s.SessionTimeout.Truncate(time.Millisecond) // the protocol's unit
	return nil
}

func (s *settings) checkLimits() error {
	switch {
	case s.MaxReply < minMaxReply:
		return fmt.Errorf("zkbridge: MaxReply is %d: it must be %d or more, or 0 for the default", s.MaxReply, minMaxReply)
	case s.maxOutstanding < 0:
		return fmt.Errorf("zkbridge: MaxOutstanding is %d: it must be positive, or 0 for no limit", s.maxOutstanding)
	}
	return nil
}

func parseServers(list string) ([]string, zkconn.Chroot, error) {
	if strings.TrimSpace(list) == "" {
		return nil, "", errors.New("the list is empty: it must name a server, as in \"host:2181\"")
	}
	if scheme, _, found := strings.Cut(list, "://"); found {
		return nil, "", fmt.Errorf("%q begins with %s://: no scheme is accepted, as in \"host:2181\"", list, scheme)
	}
	hosts, path, _ := strings.Cut(list, "/")
	var servers []string
	for item := range strings.SplitSeq(hosts, ",") {
		server, err := parseServer(strings.TrimSpace(item))
		if err != nil {
			return nil, "", fmt.Errorf("%q in %q: %w", item, list, err)
		}
		servers = append(servers, server)
	}
	if strings.Contains(path, ",") {
		return nil, "", fmt.Errorf("%q: the chroot path stands behind the last server, once, and no comma is allowed in it", list)
	}
	if err := zkpath.Check("/" + path); err != nil {
		return nil, "", fmt.Errorf("%q: chroot: %w", list, err)
	}
	return servers, zkconn.Chroot(strings.TrimSuffix("/"+path, "/")), nil
}

func parseServer(item string) (string, error) {
	switch {
	case item == "":
		return "", errors.New("a server is missing between commas")
	case strings.ContainsFunc(item, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("only printable ASCII without spaces is accepted")
	}
	host, port, err := net.SplitHostPort(item)
	if err != nil { // without a port
		host, port, err = net.SplitHostPort(item + ":" + defaultPort)
	}
	if err != nil {
		return "", errors.New("it must be a host, or a host, a colon and a port; commas separate servers, " +
			"and an IPv6 address stands in brackets, as in [::1]:2181")
	}
	if err := checkHost(host, strings.HasPrefix(item, "[")); err != nil {
		return "", err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %q must be a number from 1 to 65535", port)
	}
	return net.JoinHostPort(host, port), nil
}

func checkHost(host string, inBrackets bool) error {
	if inBrackets {
		if _, err := netip.ParseAddr(host); err != nil {
			return errors.New("what stands in brackets must be an IPv6 address, as in [::1]:2181")
		}
		return nil
	}
	if host == "" {
		return errors.New("the host is missing")
	}
	if i := strings.IndexFunc(host, notInHost); i >= 0 {
		return fmt.Errorf("%q cannot be part of a host name", host[i])
	}
	return nil
}

func notInHost(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._", r))
}

// settings is a Config that was checked, with its defaults filled in.
type settings struct {
	zkconn.Settings
	maxOutstanding int // requests, 0 without limit
}
