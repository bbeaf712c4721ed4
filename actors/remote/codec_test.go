package remote

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/messages"
)

// acquires returns a frame of requests for locks.
func acquires(n int, lock *messages.LockSpec, data []byte) *messages.ClientFrame {
	f := &messages.ClientFrame{First: 1}
	for range n {
		f.Messages = append(f.Messages, &messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{Path: "/a", Lock: lock,
			Acquire: &messages.Acquire{Data: data}}}})
	}
	return f
}

// A frame that would take far more memory than its bytes is refused before it takes that. What a client
// of ours sends is taken in.
func TestFramesAreBoundedByTheirMessages(t *testing.T) {
	sample.OneRaceRunIn(t, 4)
	members := func(n int, m *messages.Member) *messages.LockSpec {
		s := &messages.LockSpec{Recipe: messages.Recipe_MULTI_LOCK}
		for range n {
			s.Members = append(s.Members, m)
		}
		return s
	}
	full := &messages.Member{Path: "/some/lock", Lock: &messages.LockSpec{Permits: 1, CountPath: "/n"}}
	empty := &messages.ClientFrame{}
	for range 500_000 {
		empty.Messages = append(empty.Messages, &messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{}}})
	}
	grants := &messages.ServerFrame{}
	for range 500_000 {
		grants.Messages = append(grants.Messages, &messages.ServerMessage{What: &messages.ServerMessage_Granted{Granted: &messages.Granted{}}})
	}
	nodes := &messages.Granted{}
	for i := range 25_000 {
		nodes.Parts = append(nodes.Parts, &messages.Granted{Path: "/a", Node: fmt.Sprintf("leases/_c_01234567-0123-0123-0123-%012x-lease-%010d", i, i), Czxid: 1 << 40})
	}
	for name, c := range map[string]struct {
		frame proto.Message
		taken bool
	}{
		"empty grants":         {grants, false},
		"nodes of a grant":     {&messages.ServerFrame{Messages: []*messages.ServerMessage{{What: &messages.ServerMessage_Granted{Granted: nodes}}}}, true},
		"empty acquires":       {empty, false},
		"empty members":        {acquires(1, members(900_000, &messages.Member{}), nil), false},
		"members of members":   {acquires(100, members(100, &messages.Member{Lock: members(50, &messages.Member{})}), nil), false},
		"largest multi-locks":  {acquires(maxFrameMessages, members(64, full), nil), true},
		"small":                {acquires(1, &messages.LockSpec{}, nil), true},
		"data":                 {acquires(1, &messages.LockSpec{}, make([]byte, maxData)), true},
		"data that look alike": {acquires(1, &messages.LockSpec{}, []byte(strings.Repeat("2\x02\n\x00", maxData/4))), true},
	} {
		text, err := proto.Marshal(c.frame)
		if err != nil || len(text) > maxMessage {
			t.Fatalf("%s: %d bytes, %v", name, len(text), err)
		}
		got := c.frame.ProtoReflect().New().Interface()
		c.frame = nil
		allocated := testing.AllocsPerRun(1, func() {
			proto.Reset(got)
			err = newFrameCodec(newFrameTurns()).Unmarshal(mem.BufferSlice{mem.SliceBuffer(text)}, got)
		})
		if taken := err == nil; taken != c.taken || !taken && (status.Code(err) != codes.ResourceExhausted || allocated > 100) {
			t.Errorf("%s: %d bytes: %v, %v allocations", name, len(text), err, allocated)
		}
	}
	if left := countObjects([]byte{0xff}, (&messages.ClientFrame{}).ProtoReflect().Descriptor(), 5); left != 5 {
		t.Errorf("%d left", left)
	}
}
