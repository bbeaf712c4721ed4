//go:build unix

package remote_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// One client locks and unlocks, again and again, beside a process that attacks the lock server. "p50",
// "p99" and "max" are of the client's lock and unlock together, "server-cpu" and "attacker-cpu" what the
// processes take of one processor. The attack "burn" takes the processors and sends nothing: it shows what
// the machine costs. By "nice" the attacker has what the others leave of the processors, as if it had its own.
func BenchmarkBesideHostile(b *testing.B) {
	zk := zktest.Embedded(b)
	names := []string{"none", "burn"}
	for name := range attacks {
		if name != "burn" {
			names = append(names, name)
		}
	}
	slices.Sort(names[2:])
	for _, nice := range []bool{true, false} {
		for _, name := range names {
			b.Run(fmt.Sprintf("nice=%v/%s", nice, name), func(b *testing.B) { benchHostile(b, zk, name, nice) })
		}
	}
}

func benchHostile(b *testing.B, zk *zktest.Server, name string, nice bool) {
	_, _, addr := benchServerOf(b, zk)
	cfg := remote.DialConfig{Insecure: true}
	if name == "hellos" {
		a := zktest.NewAuthority(b)
		addr = serveTLS(b, zk.Addr(), &tls.Config{Certificates: []tls.Certificate{a.Issue("server")}}, remote.ServerConfig{})
		cfg = remote.DialConfig{Config: actors.Config{TLS: &tls.Config{RootCAs: a.Pool()}}}
	}
	honest, err := remote.Dial(b.Context(), addr, cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer honest.Close()
	mu := honest.Mutex("/honest/" + name)
	lockUnlock(b, mu)
	var stop func() time.Duration
	if name != "none" {
		stop = startAttack(b, name, addr, nice)
	}
	began, cpu := time.Now(), processorTime()
	var all []time.Duration
	for time.Since(began) < 2*time.Second {
		at := time.Now()
		lockUnlock(b, mu)
		all = append(all, time.Since(at))
		time.Sleep(time.Millisecond)
	}
	lasted, own := time.Since(began), processorTime()-cpu
	if stop != nil {
		b.ReportMetric(stop().Seconds()/lasted.Seconds(), "attacker-cpu")
	}
	slices.Sort(all)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(all[len(all)/2]), "p50-ms")
	b.ReportMetric(ms(all[len(all)*99/100]), "p99-ms")
	b.ReportMetric(ms(all[len(all)-1]), "max-ms")
	b.ReportMetric(own.Seconds()/lasted.Seconds(), "server-cpu")
	b.ReportMetric(0, "ns/op")
}

// processorTime returns what the process has used.
func processorTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// startAttack starts a process that attacks the server until stop, which returns its processor time.
func startAttack(b *testing.B, name, addr string, nice bool) (stop func() time.Duration) {
	command := []string{os.Args[0]}
	if nice {
		command = append([]string{"nice", "-n", "19"}, command...)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), attackVariable+"="+name+" "+addr)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	bufio.NewReader(out).ReadString('\n') // it has begun
	time.Sleep(300 * time.Millisecond)
	return func() time.Duration {
		cmd.Process.Kill()
		cmd.Wait()
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
}

// attackVariable is set, to an attack and an address, in a process that attacks.
const attackVariable = "ACTORLOCK_ATTACK"

func init() {
	name, addr, is := strings.Cut(os.Getenv(attackVariable), " ")
	if !is {
		return
	}
	go func() { // the benchmark may have been stopped
		for parent := os.Getppid(); os.Getppid() == parent; time.Sleep(time.Second) {
		}
		os.Exit(1)
	}()
	fmt.Println("attacks")
	attacks[name](addr)
}

// burnt is what attack "burn" writes to.
var burnt atomic.Int64

// attacks never return.
var attacks = map[string]func(addr string){
	"burn": func(string) {
		burn := func() {
			for n := 0; ; n++ {
				burnt.Store(int64(n))
			}
		}
		go burn()
		burn()
	},
	// Requests of many permits.
	"permits": func(addr string) {
		attackByLocks(addr, func(l *actors.Locks) {
			pool := l.Semaphore("/pool", 1_000_000)
			acquireAll(60, func(int) *actors.Future[*actors.Grant] {
				return pool.Acquire(context.Background(), actors.Permits(6000))
			})
		})
	},
	// Many requests, for locks that are new each time.
	"requests": func(addr string) {
		n := 0
		attackByLocks(addr, func(l *actors.Locks) {
			n++
			acquireAll(9000, func(i int) *actors.Future[*actors.Grant] {
				return l.Mutex(fmt.Sprintf("/flood%d/%d", n, i)).Acquire(context.Background())
			})
		})
	},
	// Many requests, for one lock.
	"queue": func(addr string) {
		attackByLocks(addr, func(l *actors.Locks) {
			acquireAll(9000, func(i int) *actors.Future[*actors.Grant] { return l.Mutex("/queue").Acquire(context.Background()) })
		})
	},
	// Questions whose answers are long.
	"questions": func(addr string) {
		attackByLocks(addr, func(l *actors.Locks) {
			var held []*actors.Future[*actors.Grant]
			for range 1000 {
				held = append(held, l.Mutex("/asked").Acquire(context.Background()))
			}
			held[0].Wait(context.Background())
			defer runtime.KeepAlive(held)
			parallel(60, func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				l.Mutex("/asked").Participants(ctx)
				l.FindLocks(ctx, "/")
			})
		})
	},
	// Large frames: each message is refused, and the client confirms all.
	"frames": func(addr string) {
		attackByStreams(addr, 1, func(s *attackStream) bool { return s.send(s.frame(19_000, &messages.AcquireLock{}, 100)) })
	},
	// Small frames, whose requests are refused.
	"refusals": func(addr string) {
		attackByStreams(addr, 4, func(s *attackStream) bool { return s.send(s.frame(256, &messages.AcquireLock{}, 0)) })
	},
	// Large frames that nobody can read.
	"garbage": func(addr string) {
		b := make([]byte, 2<<20)
		for i := range b {
			b[i] = []byte{0x0a, 0}[i%2]
		}
		attackByStreams(addr, 4, func(s *attackStream) bool { s.send(b); <-s.stream.Context().Done(); return false })
	},
	// Streams that begin, and break.
	"streams": func(addr string) {
		attackByStreams(addr, 16, func(s *attackStream) bool { return false })
	},
	// Connections that begin, and break.
	"connections": func(addr string) {
		attackByConnections(addr, []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	},
	// Connections that begin with one and the same message of TLS, and break.
	"hellos": func(addr string) {
		client, server := net.Pipe()
		go tls.Client(client, &tls.Config{ServerName: "localhost", NextProtos: []string{"h2"}}).Handshake()
		hello := make([]byte, 16<<10)
		n, _ := server.Read(hello)
		attackByConnections(addr, hello[:n])
	},
	// Renewals.
	"renewals": func(addr string) {
		attackByStreams(addr, 4, func(s *attackStream) bool {
			s.renewals++
			return s.send(marshal(&messages.ClientFrame{Renew: &messages.Renew{Number: s.renewals}}))
		})
	},
	// Short questions.
	"asks": func(addr string) {
		kinds := inspection.Kinds()
		attackByStreams(addr, 4, func(s *attackStream) bool {
			f := &messages.ClientFrame{Received: s.received(), First: s.sent + 1}
			for i := range 64 {
				f.Messages = append(f.Messages, &messages.ClientMessage{What: &messages.ClientMessage_Question{Question: &messages.Question{
					Id: uint64(i), Kind: kinds[i%len(kinds)], Path: "/"}}})
			}
			s.sent += 64
			return s.send(marshal(f))
		})
	},
}

// attackByConnections opens connections, sends something by each, and closes them.
func attackByConnections(addr string, sends []byte) {
	parallel(16, func() {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Write(sends)
			c.Close()
		}
	})
}

func attackByLocks(addr string, do func(*actors.Locks)) {
	for {
		l, err := remote.Dial(context.Background(), addr, remote.DialConfig{Insecure: true})
		if err != nil {
			continue
		}
		for l.Session().State == messages.SessionState_CONNECTED {
			do(l)
		}
		l.Close()
	}
}

func acquireAll(n int, acquire func(i int) *actors.Future[*actors.Grant]) {
	var all []*actors.Future[*actors.Grant]
	for i := range n {
		all = append(all, acquire(i))
	}
	for _, f := range all {
		if g, err := f.Wait(context.Background()); err == nil {
			g.Release()
		}
	}
}

func parallel(n int, do func()) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for {
				do()
			}
		})
	}
	all.Wait()
}

// attackStream is a stream of any frames.
type attackStream struct {
	stream         grpc.ClientStream
	sent, renewals uint64

	mu   sync.Mutex
	read uint64
}

// attackByStreams has n goroutines do something with a new stream, again and again, until it returns false.
func attackByStreams(addr string, n int, do func(*attackStream) bool) {
	parallel(n, func() {
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawBytes{}), grpc.MaxCallSendMsgSize(64<<20), grpc.MaxCallRecvMsgSize(64<<20)))
		if err != nil {
			return
		}
		defer conn.Close()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, streamMethod)
		if err != nil {
			return
		}
		s := &attackStream{stream: stream}
		if !s.send(marshal(&messages.ClientFrame{Hello: &messages.Hello{Version: 1}})) || !s.take() {
			return
		}
		go func() {
			for s.take() {
			}
		}()
		for do(s) {
		}
	})
}

func (s *attackStream) send(b []byte) bool { return s.stream.SendMsg(b) == nil }

func (s *attackStream) received() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read
}

// take reads a frame, and reports whether there was one.
func (s *attackStream) take() bool {
	var b []byte
	if s.stream.RecvMsg(&b) != nil {
		return false
	}
	var f messages.ServerFrame
	if proto.Unmarshal(b, &f) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := uint64(len(f.Messages)); n > 0 {
		s.read = f.First + n - 1
	}
	return true
}

// frame returns a frame of n requests, which confirms what has come but for the last messages.
func (s *attackStream) frame(n int, acquire *messages.AcquireLock, but uint64) []byte {
	f := &messages.ClientFrame{Received: s.received() - min(but, s.received()), First: s.sent + 1}
	for range n {
		f.Messages = append(f.Messages, &messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: acquire}})
	}
	s.sent += uint64(n)
	return marshal(f)
}
