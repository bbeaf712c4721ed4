package simulation

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/actors/internal/streams"
	"github.com/actorlock/actorlock/messages"
)

// The streams between clients and lock servers. A stream is a connection of the network, and a frame is
// what one write delivers. Like the streams of gRPC, those of a client with one server share a link.

// link is what the streams of a client with one server share, as streams share a connection of gRPC.
type link struct {
	dead  atomic.Bool // nothing is delivered any more, and neither end hears of that
	ended atomic.Bool
}

// stream is what a connection between a client and a lock server has of its own.
type stream struct {
	link   *link
	peer   *peer
	server *endpoint
	once   sync.Once
}

// peer is a lock server as its clients reach it.
type peer struct {
	*host
	connect func(streams.ServerStream, string) error
}

// isBlocked reports whether nothing is delivered because of the link or of the lock server.
func (s *stream) isBlocked(to string) bool {
	h := s.peer.host
	h.mu.Lock()
	defer h.mu.Unlock()
	return s.link.dead.Load() || h.blocked || h.mute && to == "client" || h.deaf && to == "server"
}

// extraDelay returns what the lock server adds to a delay.
func (s *stream) extraDelay(to string) time.Duration {
	h := s.peer.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if to == "server" {
		return h.extraDelay + h.extraAnswerDelay
	}
	return h.extraDelay
}

// accept has the lock server serve the stream, once something has come.
func (s *stream) accept() {
	s.once.Do(func() { go s.serve() })
}

func (s *stream) serve() {
	e := s.server
	err := s.peer.connect(serverFrames{e}, "") // as without TLS: only its lease tells a client from others
	e.writeFrame(endOfStream, []byte(describeEnd(err)), "ends: "+describeEnd(err))
	e.Close()
}

func describeEnd(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// streamDialer opens the streams of a client.
type streamDialer struct {
	host *host

	mu    sync.Mutex
	links map[string]*link // by server
}

// Connect implements streams.Dialer. It does not block.
func (d *streamDialer) Connect(ctx context.Context, server string) (streams.Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h := d.host
	h.mu.Lock()
	h.dialed++
	n, dead := h.dialed, h.dead
	h.mu.Unlock()
	h.network.mu.Lock()
	to := h.network.peers[server]
	if h.network.sharedName {
		to = h.network.peers[lockServerAddress(int(n)%max(1, len(h.network.peers)))]
	}
	h.network.mu.Unlock()
	if to == nil || dead {
		h.network.loop.record("%s.%d is refused by %s", h.name, n, server)
		return nil, fmt.Errorf("%s refuses the connection", server)
	}
	c := h.open(n)
	c.stream = &stream{link: d.link(server), peer: to, server: c.serverEnd()}
	to.add(c)
	h.network.loop.record("%s to %s", c.name, server)
	s := clientFrames{c.clientEnd(), ctx}
	context.AfterFunc(ctx, s.reset)
	return s, nil
}

// link returns the link to a server, a new one if the last one has ended.
func (d *streamDialer) link(server string) *link {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.links[server]; l != nil && !l.ended.Load() {
		return l
	}
	d.links[server] = &link{}
	return d.links[server]
}

// Abandon implements streams.Dialer: the next stream to a server has another link.
func (d *streamDialer) Abandon(server string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.links, server)
}

// endLinks breaks the links for which which reports true. The next streams have others.
func (h *host) endLinks(which func(*link) bool) {
	h.mu.Lock()
	connections := append([]*connection(nil), h.connections...)
	h.mu.Unlock()
	for _, c := range connections {
		if c.stream != nil && which(c.stream.link) {
			c.cut()
		}
	}
}

// The kinds of what is written to a stream.
const (
	frameOfStream = iota
	endOfStream   // the lock server has ended the stream, with the text of an error or without
	resetOfStream // the client has given the stream up
)

// flowWindow is how many bytes of a stream may be in flight.
const flowWindow = 4 << 10

// writeFrame writes a frame, and blocks while too much is in flight.
func (e *endpoint) writeFrame(kind byte, b []byte, text string) error {
	most := flowWindow
	if kind != frameOfStream {
		most = 0
	}
	header := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(b)))
	_, err := e.out.writeAs(append(header, b...), " "+text, most)
	return err
}

func (e *endpoint) readFrame() (kind byte, b []byte, err error) {
	var header [5]byte
	if _, err := io.ReadFull(e, header[:]); err != nil {
		return 0, nil, err
	}
	b = make([]byte, binary.BigEndian.Uint32(header[1:]))
	_, err = io.ReadFull(e, b)
	return header[0], b, err
}

var marshal = proto.MarshalOptions{Deterministic: true}.Marshal

// clientFrames is a stream at its client.
type clientFrames struct {
	*endpoint
	ctx context.Context // after whose end the stream is given up
}

// Send implements streams.Client. What cannot be written ends the stream, as it does with gRPC.
func (s clientFrames) Send(f *messages.ClientFrame) error {
	if f.Hello != nil { // the name of the program would differ between runs
		f = proto.CloneOf(f)
		f.Hello.Client = ""
	}
	b, err := marshal(f)
	if err != nil {
		s.reset()
		return err
	}
	if s.ctx.Err() != nil || s.writeFrame(frameOfStream, b, describeClientFrame(f)) != nil {
		return io.EOF
	}
	return nil
}

// Recv implements streams.Client.
func (s clientFrames) Recv() (*messages.ServerFrame, error) {
	kind, b, err := s.readFrame()
	switch {
	case err != nil:
		return nil, fmt.Errorf("the connection is broken: %w", notEOF(err))
	case kind == frameOfStream:
		f := &messages.ServerFrame{}
		if err := proto.Unmarshal(b, f); err != nil {
			s.reset()
			return nil, err
		}
		return f, nil
	case len(b) == 0:
		return nil, io.EOF
	}
	return nil, errors.New(string(b))
}

// notEOF returns the error of a connection that has ended within a frame or without the end of its
// stream.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// CloseSend implements streams.Client.
func (s clientFrames) CloseSend() error {
	if s.ctx.Err() != nil {
		s.reset()
	} else {
		s.out.closeWriter()
	}
	return nil
}

// reset gives the stream up.
func (s clientFrames) reset() {
	s.writeFrame(resetOfStream, nil, "is given up")
	s.Close()
}

// serverFrames is a stream at its server.
type serverFrames struct{ *endpoint }

// Send implements streams.ServerStream.
func (s serverFrames) Send(f *messages.ServerFrame) error {
	b, err := marshal(f)
	if err == nil {
		err = s.writeFrame(frameOfStream, b, describeServerFrame(f))
	}
	return err
}

// Recv implements streams.ServerStream.
func (s serverFrames) Recv() (*messages.ClientFrame, error) {
	kind, b, err := s.readFrame()
	switch {
	case err == io.EOF: // the client sends nothing more
		return nil, io.EOF
	case err != nil:
		return nil, notEOF(err)
	case kind == resetOfStream:
		return nil, context.Canceled
	}
	f := &messages.ClientFrame{}
	return f, proto.Unmarshal(b, f)
}

// yield returns what a goroutine does that sends the frames of a stream, before it takes what is to be
// sent: in some of the seeds it sometimes pauses, so that other goroutines of its process run first.
func (sim *simulation) yield(seed uint64) func() {
	if seed%3 == 2 {
		return func() {}
	}
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 10))
	return func() {
		mu.Lock()
		pause, d := r.IntN(4) == 0, time.Duration(1+r.Int64N(int64(2*time.Millisecond)))
		mu.Unlock()
		if pause {
			time.Sleep(d)
		}
	}
}

func describeClientFrame(f *messages.ClientFrame) string {
	var all []string
	if h := f.Hello; h != nil {
		all = append(all, fmt.Sprintf("hello %x", h.Lease))
		if h.LetGo != 0 {
			all = append(all, fmt.Sprintf("let go of %x", h.LetGo))
		}
	}
	if r := f.Renew; r != nil {
		all = append(all, fmt.Sprintf("renew %d got %d", r.Number, r.Got))
	}
	if f.Bye {
		all = append(all, "bye")
	}
	for i, m := range f.Messages {
		text := strings.TrimPrefix(fmt.Sprintf("%T", m.What), "*messages.ClientMessage_")
		switch w := m.What.(type) {
		case *messages.ClientMessage_Acquire:
			text += fmt.Sprintf(" %d of %s", w.Acquire.GetAcquire().GetRequestId(), w.Acquire.GetPath())
		case *messages.ClientMessage_Release:
			text += fmt.Sprintf(" %d", w.Release.GetRequestId())
		case *messages.ClientMessage_Cancel:
			text += fmt.Sprintf(" %d", w.Cancel.GetRequestId())
		}
		all = append(all, fmt.Sprintf("#%d %s", f.First+uint64(i), text))
	}
	return describeFrame(all, f.Received)
}

func describeServerFrame(f *messages.ServerFrame) string {
	var all []string
	if w := f.Welcome; w != nil {
		all = append(all, fmt.Sprintf("welcome %x, resumed: %v", w.Lease, w.Resumed))
	}
	if r := f.Renewed; r != nil {
		all = append(all, fmt.Sprintf("renewed %d for %v", r.Number, time.Duration(r.ForNanos)))
	}
	if f.State != nil {
		all = append(all, fmt.Sprintf("connected: %v", f.State.Connected))
	}
	if f.GoAway {
		all = append(all, "go away")
	}
	if e := f.Ended; e != nil {
		all = append(all, fmt.Sprintf("ended: %v, %s", e.Reason, e.Detail))
	}
	for i, m := range f.Messages {
		text := strings.TrimPrefix(fmt.Sprintf("%T", m.What), "*messages.ServerMessage_")
		switch w := m.What.(type) {
		case *messages.ServerMessage_Granted:
			text += fmt.Sprintf(" %d", w.Granted.GetRequestId())
		case *messages.ServerMessage_Refused:
			text += fmt.Sprintf(" %d: %v", w.Refused.GetRequestId(), w.Refused.GetReason())
		case *messages.ServerMessage_Released:
			text += fmt.Sprintf(" %d", w.Released.GetRequestId())
		case *messages.ServerMessage_Lost:
			text += fmt.Sprintf(" %d: %v", w.Lost.GetRequestId(), w.Lost.GetReason())
		}
		all = append(all, fmt.Sprintf("#%d %s", f.First+uint64(i), text))
	}
	return describeFrame(all, f.Received)
}

func describeFrame(all []string, received uint64) string {
	if received > 0 {
		all = append(all, fmt.Sprintf("received %d", received))
	}
	return strings.Join(all, ", ")
}

var _ streams.Dialer = (*streamDialer)(nil)
