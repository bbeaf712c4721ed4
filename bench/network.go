package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A network is a proxy in front of ZooKeeper, in a process of its own, that passes on each message after half of the round-trip
// time.

// delayCommand is the first argument of this binary as such a proxy: delay ADDR DELAY. It prints its address.
const delayCommand = "delay"

// serveDelay accepts connections, and connects each to the server, until the input ends.
func serveDelay(server, delay string, in io.Reader, out io.Writer) (code int) {
	d, err := time.ParseDuration(delay)
	if err != nil {
		fmt.Fprintln(os.Stderr, "delay:", err)
		return exitUsage
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "delay:", err)
		return exitUnavailable
	}
	defer l.Close()
	fmt.Fprintln(out, l.Addr())
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go connectWithDelay(client, server, d)
		}
	}()
	_, _ = io.Copy(io.Discard, in) // ends with the parent
	return 0
}

func connectWithDelay(client net.Conn, server string, delay time.Duration) {
	conn, err := net.Dial("tcp", server)
	if err != nil {
		client.Close()
		return
	}
	go passOn(client, conn, delay, newSleep())
	passOn(conn, client, delay, newSleep())
}

// inFlight are bytes that were read at once.
type inFlight struct {
	due  time.Time
	data []byte
}

// newSleep returns a sleep for one goroutine at a time. It uses a timer of the kernel, because time.Sleep is late by up to a
// millisecond: a Go process that has nothing to run waits for whole milliseconds, so that each message in one direction
// postpones the one that is due in the other.
func newSleep() (sleep func(time.Duration)) {
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		panic(err) // there are too many open files
	}
	file := os.NewFile(uintptr(timer), "timer") // its finalizer closes it
	return func(d time.Duration) {
		if d <= 0 {
			return
		}
		err := unix.TimerfdSettime(timer, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
		if err == nil {
			_, err = file.Read(make([]byte, 8))
		}
		if err != nil {
			panic(err) // the arguments are wrong
		}
	}
}

// passOn writes what it reads after the delay, until either end closes. Then it closes both.
func passOn(from, to net.Conn, delay time.Duration, sleep func(time.Duration)) {
	defer from.Close()
	defer to.Close()
	flying := make(chan inFlight, 1<<14)
	go func() {
		defer close(flying)
		for buffer := make([]byte, 64<<10); ; {
			n, err := from.Read(buffer)
			if n > 0 {
				flying <- inFlight{time.Now().Add(delay), bytes.Clone(buffer[:n])}
			}
			if err != nil {
				return
			}
		}
	}()
	for f := range flying {
		sleep(time.Until(f.due))
		if _, err := to.Write(f.data); err != nil {
			break
		}
	}
	from.Close()
	for range flying { // the reader must not block
	}
}

// use has the peers reach ZooKeeper by the route. It stops all workers if they use another one.
func (e *environment) use(ctx context.Context, r route) (err error) {
	if r == e.route {
		return nil
	}
	for name := range e.workers {
		e.stopWorkers(peer{name: name})
	}
	e.stopEnsemble() // it would disturb others
	e.route = route{}
	if _, found := e.networks[r.roundTrip]; !found && r.roundTrip > 0 {
		if e.networks[r.roundTrip], err = e.startNetwork(r.roundTrip); err != nil {
			delete(e.networks, r.roundTrip)
			return err
		}
	}
	if r.ensemble {
		if err := e.startEnsemble(ctx); err != nil {
			return err
		}
	}
	e.route = r
	return nil
}

// startNetwork starts the proxy: with real-time priority where that is allowed, because its timers are late otherwise on a
// machine that the peers keep busy.
func (e *environment) startNetwork(roundTrip time.Duration) (addr string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	args := []string{self, delayCommand, e.addrs["zookeeper"], (roundTrip / 2).String()}
	if strings.ContainsAny(args[2], ",/") {
		return "", errors.New("-zk: scenarios with a network accept one address, without a chroot")
	}
	if exec.Command("chrt", "--rr", "1", "true").Run() == nil {
		args = append([]string{"chrt", "--rr", "1"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	if _, err = cmd.StdinPipe(); err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	p, err := spawn(cmd)
	if err != nil {
		return "", err
	}
	e.serving[delayCommand] = append(e.serving[delayCommand], p)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the network of %v does not start: %w", roundTrip, err)
	}
	return strings.TrimSpace(line), nil
}

// bareRoundTrip returns the median time, in microseconds, of a request of a few bytes and its answer on a connection that is open, over
// the network that the workers use.
func (e *environment) bareRoundTrip(ctx context.Context) (float64, error) {
	conn, err := dialZooKeeper(ctx, e.networks[e.route.roundTrip])
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	var all []float64
	for range 15 {
		begun := time.Now()
		if _, _, err := conn.Exists("/zookeeper"); err != nil {
			return 0, err
		}
		all = append(all, micros(time.Since(begun)))
	}
	middle := median(all)
	e.bareRoundTrips[e.route.roundTrip] = append(e.bareRoundTrips[e.route.roundTrip], middle)
	return middle, nil
}

// over returns the scenario over a network with the round-trip time. Curator is not measured: its 64 threads need more than ten
// seconds until each has had the lock.
func over(roundTrip time.Duration, s scenario) scenario {
	alone := s.fits
	s.about = fmt.Sprintf("As %s, over a network with a round-trip time of %v.", s.name, roundTrip)
	s.name = fmt.Sprintf("rtt%d-%s", roundTrip.Milliseconds(), s.name)
	s.route.roundTrip = roundTrip
	s.brief = false
	s.fits = func(p peer) bool { return p.reference && p.name != curator.name && alone(p) }
	return s
}

// overNetworks are the scenarios that are measured with a network, too.
func overNetworks() (all []scenario) {
	for _, roundTrip := range []time.Duration{2 * time.Millisecond, 10 * time.Millisecond} {
		for _, s := range []scenario{uncontended, hot64, handoff, fleet, fleetHold, cold1, cold64, cold256} {
			all = append(all, over(roundTrip, s))
		}
	}
	return all
}
