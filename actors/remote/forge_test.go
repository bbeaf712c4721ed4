package remote_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/messages"
)

// choices decides what a forger makes.
type choices interface {
	// below returns a number from 0 to n-1.
	below(n int) int
}

// drawn are random choices.
type drawn struct{ *rand.Rand }

func (d drawn) below(n int) int { return d.IntN(max(n, 1)) }

// tape are the choices that the input of a fuzzer stands for. Behind its end each choice is 0.
type tape struct{ left []byte }

func (t *tape) below(n int) int {
	b := 0
	for reach := 1; reach < n && len(t.left) > 0; reach <<= 8 {
		b = b<<8 | int(t.left[0])
		t.left = t.left[1:]
	}
	return b % max(n, 1)
}

// take returns the next n bytes, or those that are left.
func (t *tape) take(n int) (b []byte) {
	n = min(n, len(t.left))
	b, t.left = t.left[:n:n], t.left[n:]
	return b
}

// forger makes messages as they come from the network: from their descriptors, so that no message and
// no field of the protocol can be left out. Most fields have what an honest end would send, so that
// the messages get far, and some have anything.
type forger struct {
	choices
	// usual returns what an honest end has in a field: a number, bool, string or []byte, a [][]byte of
	// messages, or nil if the field is left out. A field of messages without an entry has one message.
	usual map[protoreflect.FullName]func() any
	room  int // bytes that may be made in all
}

// many reports true one time in n.
func (f *forger) oneIn(n int) bool { return f.below(n) == n-1 }

// choose returns one of several.
func choose[T any](c choices, of ...T) T { return of[c.below(len(of))] }

// maxDepth bounds messages within messages: gRPC's own bound is far above.
const maxDepth = 5

// message makes a message.
func (f *forger) message(d protoreflect.MessageDescriptor, depth int) (b []byte) {
	fields, wild, odd := d.Fields(), false, -1
	switch f.below(16) {
	case 13, 14:
		odd = f.below(fields.Len())
	case 15:
		wild = true
	}
	chosen := map[protoreflect.FullName]int{} // of each oneof
	for i := range fields.Len() {
		field := fields.Get(i)
		if group := field.ContainingOneof(); group != nil && !wild && i != odd {
			if _, is := chosen[group.FullName()]; !is {
				chosen[group.FullName()] = f.below(group.Fields().Len())
			}
			if group.Fields().Get(chosen[group.FullName()]) != field {
				continue
			}
		}
		if i == odd || wild && f.oneIn(2) {
			b = f.odd(b, field, depth)
		} else if !wild {
			b = f.honest(b, field, depth)
		}
	}
	if wild && f.oneIn(4) { // a field of a later version, or of none
		b = protowire.AppendTag(b, protowire.Number(choose(f, 1, 19, 1000, protowire.MaxValidNumber)), protowire.BytesType)
		b = protowire.AppendBytes(b, make([]byte, f.below(300)))
	}
	return b
}

// honest makes a field as an honest end would.
func (f *forger) honest(b []byte, field protoreflect.FieldDescriptor, depth int) []byte {
	if usual := f.usual[field.FullName()]; usual != nil {
		return appendField(b, field, usual())
	}
	if field.Message() == nil || depth >= maxDepth || field.IsList() && !f.oneIn(4) {
		return b
	}
	return appendField(b, field, f.message(field.Message(), depth+1))
}

// odd makes a field with anything in it.
func (f *forger) odd(b []byte, field protoreflect.FieldDescriptor, depth int) []byte {
	n := 1
	if field.IsList() {
		n = choose(f, 1, 2, 0, 100, 1_000, 10_000, 1_000_000)
	}
	if f.oneIn(12) { // of another type
		b = protowire.AppendTag(b, field.Number(), protowire.VarintType)
		return protowire.AppendVarint(b, f.number())
	}
	one := appendField(nil, field, f.anything(field, depth))
	for range n {
		if f.room -= len(one) + 1; f.room < 0 {
			break
		}
		b = append(b, one...)
	}
	return b
}

// anything returns a value of a field's kind.
func (f *forger) anything(field protoreflect.FieldDescriptor, depth int) any {
	switch field.Kind() {
	case protoreflect.MessageKind:
		switch {
		case f.oneIn(3) || depth >= maxDepth:
			return []byte{}
		case f.oneIn(8):
			return f.text()
		}
		return f.message(field.Message(), depth+1)
	case protoreflect.StringKind, protoreflect.BytesKind:
		return f.text()
	case protoreflect.EnumKind:
		return uint64(int64(f.below(field.Enum().Values().Len()+4) - 2))
	case protoreflect.BoolKind:
		return f.oneIn(2)
	}
	return f.number()
}

// number returns a number at a bound of its type, or a small one.
func (f *forger) number() uint64 {
	bounds := []uint64{0, 1, math.MaxInt32, math.MaxUint32, math.MaxInt64, math.MaxUint64, 1 << 31, 1 << 63, 8_000, 1e9, 3_600e9}
	return bounds[f.below(len(bounds))] + uint64(f.below(3)) - 1
}

// text returns a text, which may not be UTF-8.
func (f *forger) text() []byte {
	short := []string{"", "a", "caf\xe9", "\xff", "\x00", "/", "/locks/../honest/own", "/locks/0/locks/x", "null", "{", "[null]", `{"a":[]}`, `"x"`, "-1", "1e99"}
	if n := f.below(len(short) + 4); n < len(short) {
		return []byte(short[n])
	}
	long := strings.Repeat("x", choose(f, 1<<10, 1<<10+1, 16<<10, 512<<10+1, 1<<20))
	if f.oneIn(2) {
		long = "/" + long
	}
	if f.room -= len(long); f.room < 0 {
		return nil
	}
	return []byte(long)
}

// appendField appends a field with a value.
func appendField(b []byte, field protoreflect.FieldDescriptor, value any) []byte {
	bytes := func(v []byte) {
		b = protowire.AppendBytes(protowire.AppendTag(b, field.Number(), protowire.BytesType), v)
	}
	varint := func(v uint64) {
		b = protowire.AppendVarint(protowire.AppendTag(b, field.Number(), protowire.VarintType), v)
	}
	switch v := value.(type) {
	case nil:
	case []byte:
		bytes(v)
	case string:
		bytes([]byte(v))
	case [][]byte:
		for _, one := range v {
			bytes(one)
		}
	case bool:
		varint(protowire.EncodeBool(v))
	case uint64:
		varint(v)
	default:
		panic("a field of this kind is not known")
	}
	return b
}

func descriptorOf(m proto.Message) protoreflect.MessageDescriptor {
	return m.ProtoReflect().Descriptor()
}

// Each field of each message that may come from the network is made, and most frames can be read.
func TestForgerMakesEveryField(t *testing.T) {
	sample.OneRaceRunIn(t, 4)
	t.Parallel()
	for _, frame := range []proto.Message{&messages.ClientFrame{}, &messages.ServerFrame{}} {
		missing := map[protoreflect.FullName]bool{}
		collect(missing, descriptorOf(frame))
		all := len(missing)
		f := &forger{choices: drawn{rand.New(rand.NewPCG(1, 1))}}
		frames, read := 0, 0
		for ; frames < 1000 || frames < 8000 && len(missing) > 0; frames++ {
			f.room = 1 << 16
			if proto.Unmarshal(f.message(descriptorOf(frame), 0), frame) == nil {
				read++
				strike(missing, frame.ProtoReflect())
			}
		}
		if len(missing) > 0 {
			t.Errorf("of %d fields of %T these are not made: %v", all, frame, missing)
		}
		if read < frames/2 {
			t.Errorf("%d of %d frames can be read", read, frames)
		}
	}
}

// collect adds the fields of a message and of those within it.
func collect(to map[protoreflect.FullName]bool, d protoreflect.MessageDescriptor) {
	for i := range d.Fields().Len() {
		field := d.Fields().Get(i)
		if to[field.FullName()] {
			continue
		}
		to[field.FullName()] = true
		if field.Message() != nil {
			collect(to, field.Message())
		}
	}
}

// strike deletes the fields that are set in a message and in those within it.
func strike(from map[protoreflect.FullName]bool, m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		delete(from, field.FullName())
		switch {
		case field.IsList() && field.Message() != nil:
			for i := range min(v.List().Len(), 3) {
				strike(from, v.List().Get(i).Message())
			}
		case field.Message() != nil:
			strike(from, v.Message())
		}
		return true
	})
}
