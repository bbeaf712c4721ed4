package zktest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// envServer is the address of a server that others have started, such as .ci/with-server sets. All
// tests with a [Real] server run there. Those that start servers of their own are skipped, and so
// are those of embedded servers.
const envServer = "ACTORLOCK_SERVER"

// externalAddr returns the address of the server that others have started, and "" without one.
func externalAddr() string { return os.Getenv(envServer) }

// needsNoExternal skips a test that starts a server, if there is one that others have started.
func needsNoExternal(t testing.TB, kind string) {
	t.Helper()
	if externalAddr() != "" {
		t.Skipf("zktest: runs on %s server, and %s names one to run on", kind, envServer)
	}
}

// external connects to a server that others have started, and checks that the tests can run there.
func external(addr string) (*Server, error) {
	if err := grantsSessions(addr); err != nil {
		return nil, err
	}
	s := &Server{addr: addr, shared: true, external: true, prefix: fmt.Sprintf("actorlock-test-%08x-", rand.Uint32())}
	// A server that does not answer, or does not let anybody see its watches, has none for the tests.
	reply, err := fourLetterWithin(retryTime, addr, "wchp")
	s.blind = err != nil || reply != "" && strings.Contains(reply, "not in the whitelist")
	if reply, err = fourLetterWithin(retryTime, addr, "srvr"); err == nil {
		s.version = versionIn(reply)
	}
	s.inspector, err = dial(addr, clientSession, s.Dial)
	return s, err
}

// grantsSessions checks that the server grants the sessions of the tests, of all lengths.
func grantsSessions(addr string) error {
	shortest, longest := 2*defaultTick, clientSession
	for _, asked := range []time.Duration{shortest, longest} {
		granted, err := sessionTimeout(addr, asked)
		if err != nil {
			return fmt.Errorf("open a session on %s: %w", addr, err)
		}
		if granted != asked {
			return fmt.Errorf("%s grants a session of %v where %v is asked for: the tests need %v to %v. Set minSessionTimeout=%d and maxSessionTimeout=%d there (of ClickHouse Keeper: min_session_timeout_ms and session_timeout_ms)",
				addr, granted, asked, shortest, longest, shortest.Milliseconds(), longest.Milliseconds())
		}
	}
	return nil
}

// sessionTimeout opens a session, closes it, and returns the timeout that the server granted.
func sessionTimeout(addr string, asked time.Duration) (time.Duration, error) {
	conn, err := net.DialTimeout("tcp", addr, TimeLimit)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(TimeLimit)); err != nil {
		return 0, err
	}
	if _, err := conn.Write(connectRequest(0, make([]byte, 16), asked)); err != nil {
		return 0, err
	}
	var reply struct{ Length, Protocol, Timeout int32 }
	if err := binary.Read(conn, binary.BigEndian, &reply); err != nil {
		return 0, err
	}
	if _, err := conn.Write(closeRequest()); err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, conn)
	return time.Duration(reply.Timeout) * time.Millisecond, err
}

// versionIn returns the version in a server's answer to the command srvr, such as "3.9.3" or
// "keeper-26.8".
func versionIn(reply string) string {
	line, _, _ := strings.Cut(reply, "\n")
	name, version, _ := strings.Cut(line, " version: ")
	if kind, number, model := strings.Cut(version, "keeper-"); model { // of the embedded server
		number, _, _ = strings.Cut(number, "-")
		return kind + "keeper-" + number
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	if strings.Contains(name, "Keeper") {
		return "keeper-" + number
	}
	return number
}

// removeNodes deletes what the tests have left on a server that others have started, except for the
// nodes that an ACL protects.
func (s *Server) removeNodes() error {
	names, _, err := s.inspector.Children("/")
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if strings.HasPrefix(name, s.prefix) {
			errs = append(errs, s.removeTree("/"+name))
		}
	}
	return errors.Join(errs...)
}

func (s *Server) removeTree(path string) error {
	names, _, err := s.inspector.Children(path)
	if gone(err) {
		return nil
	}
	for _, name := range names {
		err = errors.Join(err, s.removeTree(path+"/"+name))
	}
	if err != nil {
		return err
	}
	if err := s.inspector.Delete(path, -1); err != nil && !gone(err) {
		return fmt.Errorf("delete %s: %w", path, err)
	}
	return nil
}

// gone reports whether a node is missing, or not for us to delete. A directory is not empty where
// something below it is protected.
func gone(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrNotEmpty)
}
