package remote_test

import (
	"context"
	"flag"
	"log/slog"
	"net"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/actors/remote"
)

// What the fuzz targets of the two ends share: gRPC over pipes in a bubble, streams of raw bytes, and
// the bound on memory.

// fuzzSample returns a function that a target calls with each input. It skips eleven in twelve by habit, and none
// with -fuzz or -run on the command line.
func fuzzSample(f *testing.F) (sampled func(*testing.T)) {
	for _, name := range []string{"test.fuzz", "test.run"} {
		if flag.Lookup(name).Value.String() != "" {
			return func(*testing.T) {}
		}
	}
	next := sample.HabitOneIn(f, 12)
	return func(t *testing.T) {
		if !next() {
			t.Skip("one input in twelve runs by habit; with -run all")
		}
	}
}

// inmem is the network address of one process in a bubble.
type inmem struct {
	conns chan net.Conn
	done  chan struct{}
}

func newInmem() *inmem { return &inmem{make(chan net.Conn), make(chan struct{})} }

// Accept implements net.Listener.
func (l *inmem) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *inmem) Close() error {
	close(l.done)
	return nil
}

// Addr implements net.Listener.
func (l *inmem) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7400} }

// dial connects a process of an address with l.
func (l *inmem) dial(ctx context.Context, from net.IP) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- fromAddress{server, &net.TCPAddr{IP: from, Port: 1000}}:
		return client, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fromAddress is a connection of a client with an address.
type fromAddress struct {
	net.Conn
	address net.Addr
}

// RemoteAddr implements net.Conn.
func (c fromAddress) RemoteAddr() net.Addr { return c.address }

// rawBytes is the codec of an end that sends and takes any bytes.
type rawBytes struct{}

// Marshal implements encoding.CodecV2.
func (rawBytes) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (rawBytes) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// Name implements encoding.CodecV2.
func (rawBytes) Name() string { return "proto" }

// streamDesc is the method of the lock server.
var streamDesc = grpc.StreamDesc{StreamName: "Connect", ServerStreams: true, ClientStreams: true}

const streamMethod = "/actorlock.LockServer/Connect"

// rawStream is one end of a stream of any bytes.
type rawStream struct {
	end  context.CancelFunc
	up   chan []byte // nil frames: CloseSend
	deaf atomic.Bool // it does not read
	wake chan struct{}
	done chan struct{} // closed when it reads nothing more
}

// send queues a frame. It drops what a stream has no room for: the other end does not read.
func (s *rawStream) send(frame []byte) {
	select {
	case s.up <- frame:
	default:
	}
}

// listen has the stream read, or not.
func (s *rawStream) listen(deaf bool) {
	s.deaf.Store(deaf)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run sends and reads until the stream ends. on takes each frame.
func (s *rawStream) run(ctx context.Context, send func([]byte) error, closeSend func(), recv func() ([]byte, error), on func([]byte)) {
	go func() {
		for {
			select {
			case frame := <-s.up:
				if frame == nil {
					closeSend()
				} else if send(frame) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	defer close(s.done)
	defer s.end()
	for {
		for s.deaf.Load() {
			select {
			case <-s.wake:
			case <-ctx.Done():
				return
			}
		}
		frame, err := recv()
		if err != nil {
			return
		}
		on(frame)
	}
}

// dialRaw returns a connection to l whose streams carry any bytes.
func dialRaw(l *inmem, from net.IP) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.dial(ctx, from) }),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawBytes{}), grpc.MaxCallRecvMsgSize(1<<30)))
}

// dialInmem returns the locks of an honest client of the lock server at an address.
func dialInmem(t testing.TB, l *inmem, from net.IP, log *slog.Logger) *actors.Locks {
	locks, err := dialLocks(t.Context(), log, func(ctx context.Context) (net.Conn, error) { return l.dial(ctx, from) })
	if err != nil {
		t.Fatal(err)
	}
	return locks
}

func dialLocks(ctx context.Context, log *slog.Logger, dial func(context.Context) (net.Conn, error)) (*actors.Locks, error) {
	return remote.Dial(ctx, "server:7400", remote.DialConfig{Insecure: true, Config: actors.Config{Logger: log,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}})
}

// boundHeap runs f, and fails the test if the memory in use grows by more than most meanwhile. It looks
// every few milliseconds of real time, and so is called outside of a bubble.
func boundHeap(t testing.TB, most uint64, f func()) {
	before, done, peak := heapInUse(), make(chan struct{}), make(chan uint64)
	go func() {
		var highest uint64
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				peak <- highest
				return
			case <-tick.C:
			}
			if heapInUse() > before+most {
				runtime.GC() // there may be garbage among it
				highest = max(highest, heapInUse())
			}
		}
	}()
	f()
	close(done)
	if highest := <-peak; highest > before+most {
		t.Errorf("%d MB more are in use: at most %d may be", (highest-before)>>20, most>>20)
	}
}

func heapInUse() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
