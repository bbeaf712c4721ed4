package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/actorlock/actorlock/zkbridge/zktest/jars"
)

// server is a kind of server that bench can start.
type server struct {
	name    string
	find    func() error // returns errNotInstalled with the missing file
	command func(dir string, port int) (*exec.Cmd, error)
	serves  func(addr, dir string) bool
	version func(addr string) string
	about   string // how it is configured
}

// errNotInstalled is the error of a peer or server that this machine does not have.
var errNotInstalled = errors.New("not installed")

var servers = []server{zooKeeper, etcdServer, redisServer}

// classPath returns the class path of ZooKeeper's jars and others.
func classPath(names ...string) (string, error) {
	path, err := jars.ClassPath(names...)
	if err != nil {
		return "", fmt.Errorf("%w: %v", errNotInstalled, err)
	}
	return path, nil
}

func findPrograms(names ...string) error {
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%w: no program %s", errNotInstalled, name)
		}
	}
	return nil
}

var zooKeeper = server{
	name:    "zookeeper",
	about:   "standalone, forceSync=no, otherwise as by default",
	version: zooKeeperVersion,
	find: func() error {
		_, err := classPath()
		return errors.Join(err, findPrograms("java"))
	},
	command: func(dir string, port int) (*exec.Cmd, error) { return zooKeeperCommand(dir, port) },
	serves: func(addr, dir string) bool {
		state, _ := fourLetter(addr, "srvr")
		conf, _ := fourLetter(addr, "conf")
		return strings.Contains(state, "\nMode: ") && strings.Contains(conf, "dataDir="+dir)
	},
}

// zooKeeperCommand returns the command of a server whose data and configuration are in the folder. more are lines of the
// configuration.
func zooKeeperCommand(dir string, port int, more ...string) (*exec.Cmd, error) {
	path, err := classPath()
	if err != nil {
		return nil, err
	}
	config := append([]string{
		"tickTime=2000", "dataDir=" + dir, "clientPort=" + strconv.Itoa(port), "clientPortAddress=127.0.0.1",
		"maxClientCnxns=0", "admin.enableServer=false", "4lw.commands.whitelist=*"}, more...)
	file := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(file, []byte(strings.Join(config, "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	return exec.Command("java", "-Xmx1g", "-XX:-UsePerfData", "-Dzookeeper.forceSync=no",
		"-Dzookeeper.jmx.log4j.disable=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", path, "org.apache.zookeeper.server.quorum.QuorumPeerMain", file), nil
}

var etcdServer = server{
	name:    "etcd",
	about:   "one member, as by default",
	version: func(string) string { return output("etcd", "--version") },
	find:    func() error { return findPrograms("etcd") },
	command: func(dir string, port int) (*exec.Cmd, error) {
		client := "http://127.0.0.1:" + strconv.Itoa(port)
		other := "http://127.0.0.1:" + strconv.Itoa(freePort())
		return exec.Command("etcd", "--data-dir", filepath.Join(dir, "data"), "--name", "bench",
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", other, "--initial-advertise-peer-urls", other, "--initial-cluster", "bench="+other), nil
	},
	serves: func(addr, _ string) bool {
		reply, err := exchange(addr, "GET /health HTTP/1.0\r\n\r\n")
		return err == nil && strings.Contains(reply, " 200 OK\r\n")
	},
}

var redisServer = server{
	name:    "redis",
	about:   "one server, nothing is saved",
	version: func(string) string { return output("redis-server", "--version") },
	find:    func() error { return findPrograms("redis-server") },
	command: func(dir string, port int) (*exec.Cmd, error) {
		return exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
			"--save", "", "--appendonly", "no"), nil
	},
	serves: func(addr, _ string) bool {
		reply, err := exchange(addr, "PING\r\nQUIT\r\n")
		return err == nil && strings.HasPrefix(reply, "+PONG")
	},
}

// start starts the server in a folder of its own, and waits until it serves. It tries another port if the server ends, as it
// does if another program takes the port first.
func (s server) start(ctx context.Context, parent string) (*childProcess, string, error) {
	dir := filepath.Join(parent, s.name)
	log := filepath.Join(parent, s.name+".log")
	for attempt := 0; ; attempt++ {
		p, addr, err := s.try(ctx, dir, log)
		if err == nil || ctx.Err() != nil || attempt == 2 {
			return p, addr, err
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, "", err
		}
	}
}

// try starts the server on one port. It polls the server until it serves.
func (s server) try(ctx context.Context, dir, log string) (*childProcess, string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, "", err
	}
	port := freePort()
	cmd, err := s.command(dir, port)
	if err != nil {
		return nil, "", err
	}
	out, err := os.Create(log)
	if err != nil {
		return nil, "", err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	p, err := spawn(cmd)
	if err != nil {
		return nil, "", err
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	deadline := time.Now().Add(setUpTime)
	for !p.ended() && time.Now().Before(deadline) && ctx.Err() == nil {
		if s.serves(addr, dir) && !p.ended() {
			return p, addr, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.kill()
	text, _ := os.ReadFile(log)
	return nil, "", fmt.Errorf("%s does not start at %s\n%s", s.name, addr, text)
}

// freePort returns a free loopback port, below the range that systems use for outgoing connections.
func freePort() int {
	for {
		port := 10000 + rand.IntN(20000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			l.Close()
			return port
		}
	}
}

// fourLetter sends one of ZooKeeper's four-letter commands, and returns the answer.
func fourLetter(addr, word string) (string, error) { return exchange(addr, word) }

// exchange sends a text, and returns the answer up to its end.
func exchange(addr, text string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	reply, err := io.ReadAll(conn)
	return string(reply), err
}
