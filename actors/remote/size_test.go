package remote

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/messages"
)

// fill sets fields of a message to values at the limits of their types.
func fill(r *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if r.IntN(3) == 0 || field.ContainingOneof() != nil && m.WhichOneof(field.ContainingOneof()) != nil {
			continue
		}
		switch {
		case field.IsList():
			for range r.IntN(3) * r.IntN(2) * depth {
				fill(r, m.Mutable(field).List().AppendMutable().Message(), depth-1)
			}
		case field.Message() != nil:
			if depth > 0 {
				fill(r, m.Mutable(field).Message(), depth-1)
			}
		default:
			m.Set(field, valueAtLimit(r, field.Kind()))
		}
	}
}

var tooLong = strings.Repeat("x", maxNumbered)

func valueAtLimit(r *rand.Rand, kind protoreflect.Kind) protoreflect.Value {
	number := []uint64{0, 1, 127, 128, math.MaxInt32, math.MaxUint32, math.MaxInt64, math.MaxUint64}[r.IntN(8)]
	text := []string{"", "/a", strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("€", 6000)}[r.IntN(5)]
	switch r.IntN(400) {
	case 0:
		text = "caf\xe9"
	case 1:
		text = tooLong
	}
	switch kind {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(number > 127)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int32(number)))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(number))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(number)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(number))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(text))
	}
	panic("a message has a field of another kind: " + kind.String())
}

// The size of a message is that of its encoding, and what cannot be encoded, or is too large, cannot be sent.
func TestSizes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	plain, refused := map[string]int{}, 0
	n := sample.Habit(1_000, 4_000)
	for i := range n {
		var m proto.Message = &messages.ClientMessage{}
		if i%2 == 0 {
			m = &messages.ServerMessage{}
		}
		for m.ProtoReflect().WhichOneof(m.ProtoReflect().Descriptor().Oneofs().Get(0)) == nil {
			fill(r, m.ProtoReflect(), 4)
		}
		size, err := sizeOf(m)
		encoded, encodedErr := proto.Marshal(m)
		switch can := encodedErr == nil && len(encoded) <= maxNumbered; {
		case can != (err == nil), can && size != len(encoded):
			t.Fatalf("%.200v: %d bytes, %v; encoded %d, %v", m, size, err, len(encoded), encodedErr)
		case !can:
			refused++
		case plainSize(m) > 0:
			plain[string(m.ProtoReflect().WhichOneof(m.ProtoReflect().Descriptor().Oneofs().Get(0)).Name())]++
		}
	}
	for _, what := range []string{"acquire", "cancel", "release", "granted", "released"} {
		if plain[what] < n/1000 {
			t.Errorf("%d messages of kind %s are plain, and %d could not be sent", plain[what], what, refused)
		}
	}
	if refused < n/1000 {
		t.Errorf("%d messages cannot be sent", refused)
	}
}

// The messages of a lock and its unlock need no encoding for their sizes.
func TestFrequentMessagesArePlain(t *testing.T) {
	t.Parallel()
	for _, m := range []proto.Message{
		&messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{Path: "/é", Lock: &messages.LockSpec{}, Acquire: &messages.Acquire{RequestId: 1, Data: []byte("\xff")}}}},
		cancelMessage(1, false), cancelMessage(1, true), releaseMessage(1),
		&messages.ServerMessage{What: &messages.ServerMessage_Granted{Granted: &messages.Granted{RequestId: 1, Path: "/é", Node: "n"}}},
		&messages.ServerMessage{What: &messages.ServerMessage_Released{Released: &messages.Released{RequestId: 1}}},
	} {
		if plainSize(m) != proto.Size(m) {
			t.Errorf("%v: %d bytes of %d", m, plainSize(m), proto.Size(m))
		}
	}
}

func BenchmarkSizeOf(b *testing.B) {
	m := &messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{Path: "/bench/lock", Lock: &messages.LockSpec{}, Acquire: &messages.Acquire{RequestId: 1000, Data: make([]byte, 80)}}}}
	for name, f := range map[string]func(proto.Message) (int, error){"encoded": encodedSize, "plain": sizeOf} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := f(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
