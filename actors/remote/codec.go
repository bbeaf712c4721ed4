package remote

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that frameCodec passes the rest to
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/actorlock/actorlock/messages"
)

// maxFrameObjects bounds the messages in a frame, those within others included: each takes some hundred
// bytes of memory, and two on the wire. A client of ours sends maxFrameMessages at most, multi-locks of 64
// members at worst, which have two messages each. What a server of ours sends most of is the nodes of a grant,
// whose names take more bytes than would fit into maxMessage.
const maxFrameObjects = maxFrameMessages * (2*64 + 28)

// frameCodec is the codec of lock servers and their clients: gRPC's for protobuf, but it refuses a frame that
// would take far more memory than its bytes, before it makes the messages of it. It reads large frames in
// turn.
type frameCodec struct {
	encoding.CodecV2
	turns frameTurns
}

func newFrameCodec(turns frameTurns) frameCodec {
	return frameCodec{encoding.GetCodecV2("proto"), turns}
}

// Unmarshal implements encoding.CodecV2.
func (c frameCodec) Unmarshal(data mem.BufferSlice, v any) error {
	var frame proto.Message
	switch v := v.(type) {
	case *messages.ClientFrame:
		frame = v
	case *messages.ServerFrame:
		frame = v
	}
	if frame == nil || data.Len() <= smallFrameBytes {
		return c.CodecV2.Unmarshal(data, v)
	}
	defer c.turns.take()()
	if data.Len() <= 2*maxFrameObjects { // a message takes two bytes at least
		return c.CodecV2.Unmarshal(data, v)
	}
	text := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer text.Free()
	if left := countObjects(text.ReadOnlyData(), frame.ProtoReflect().Descriptor(), maxFrameObjects); left < 0 {
		return status.Error(codes.ResourceExhausted, fmt.Sprintf("a frame has more than %d messages, those within others included", maxFrameObjects))
	}
	return proto.Unmarshal(text.ReadOnlyData(), frame)
}

// countObjects returns how many of left are left when the messages within a message are counted; below
// 0 there are more. It stops at what cannot be parsed, behind which nothing is made either.
func countObjects(b []byte, d protoreflect.MessageDescriptor, left int) int {
	for len(b) > 0 && left >= 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		value := b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, value); n < 0 {
			break
		}
		b = value[n:]
		if f := d.Fields().ByNumber(number); kind == protowire.BytesType && f != nil && f.Message() != nil {
			inside, _ := protowire.ConsumeBytes(value)
			left = countObjects(inside, f.Message(), left-1)
		}
	}
	return left
}
