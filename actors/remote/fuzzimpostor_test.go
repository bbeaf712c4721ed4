package remote_test

import (
	"sync"

	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// impostor is what a lock server that keeps to no protocol knows, and the forger of its frames.
type impostor struct {
	forger

	mu             sync.Mutex // of what follows
	lease          uint64
	hello          *messages.Hello
	received, sent uint64 // numbers of messages by the newest lease
	renew          uint64
	czxid          int64
	requests       []*messages.AcquireLock
	releases       []uint64
	questions      []uint64
}

func newImpostor(c choices, room int) *impostor {
	v := &impostor{lease: 1}
	v.forger = forger{choices: c, room: room}
	const p = "actorlock."
	never := func() any { return nil }
	request := func() any { return v.request().GetAcquire().GetRequestId() }
	reason := func() any { return uint64(1 + v.below(20)) }
	v.usual = map[protoreflect.FullName]func() any{
		p + "ServerFrame.welcome":  never,
		p + "ServerFrame.renewed":  never,
		p + "ServerFrame.ended":    never,
		p + "ServerFrame.received": func() any { return v.received },
		p + "ServerFrame.first":    func() any { return v.sent + 1 },
		p + "ServerFrame.state": func() any {
			if v.oneIn(8) {
				return v.message(descriptorOf(&messages.State{}), 1)
			}
			return nil
		},
		p + "ServerFrame.messages": func() any {
			var all [][]byte
			for range v.below(4) {
				all = append(all, v.message(descriptorOf(&messages.ServerMessage{}), 1))
			}
			return all
		},
		p + "Welcome.lease":              func() any { return v.lease },
		p + "Welcome.incarnation":        func() any { return uint64(7) },
		p + "State.connected":            func() any { return true },
		p + "Renewed.number":             func() any { return v.renew },
		p + "Renewed.for_nanos":          func() any { return uint64(leaseTime) },
		p + "Granted.request_id":         request,
		p + "Granted.path":               func() any { return v.request().GetPath() },
		p + "Granted.node":               func() any { return "_c_00000000-0000-0000-0000-000000000000-lock-0000000000" },
		p + "Granted.czxid":              func() any { v.czxid++; return uint64(v.czxid) },
		p + "Granted.parts":              never,
		p + "Refused.request_id":         request,
		p + "Refused.reason":             reason,
		p + "Lost.request_id":            request,
		p + "Lost.reason":                reason,
		p + "Released.request_id":        request,
		p + "RevokeRequested.request_id": request,
		p + "Contended.request_id":       request,
		p + "Answer.id":                  func() any { return last(v.questions, v.below(2)) },
		p + "Answer.value": func() any {
			return choose(c, "", "null", "{", `{"value":null}`, `{"value":3,"error":{}}`, `{"error":{"skipped":{"/a":null}}}`, `{"value":{"Participants":[{}]}}`)
		},
	}
	return v
}

// last returns the element of s with so many behind it, or a zero.
func last[T any](s []T, behind int) (x T) {
	if len(s) > 0 {
		x = s[max(0, len(s)-1-behind)]
	}
	return x
}

// request returns one of the newest requests.
func (v *impostor) request() *messages.AcquireLock { return last(v.requests, v.below(4)) }

// take takes a frame of the client.
func (v *impostor) take(f *messages.ClientFrame) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f.Hello != nil {
		v.hello = f.Hello
	}
	if f.Renew != nil {
		v.renew = f.Renew.Number
	}
	if n := uint64(len(f.Messages)); n > 0 {
		v.received = max(v.received, f.First+n-1)
	}
	for _, m := range f.Messages {
		switch m := m.What.(type) {
		case *messages.ClientMessage_Acquire:
			v.requests = append(v.requests, m.Acquire)
		case *messages.ClientMessage_Release:
			v.releases = append(v.releases, m.Release.RequestId)
		case *messages.ClientMessage_Question:
			v.questions = append(v.questions, m.Question.Id)
		}
	}
}

func (v *impostor) count(frame []byte) {
	var f messages.ServerFrame
	if remote.TakesIn(frame, &f) && proto.Unmarshal(frame, &f) == nil && len(f.Messages) > 0 {
		v.sent = max(v.sent, f.First+uint64(len(f.Messages))-1)
	}
}

// inSequence appends to a frame the numbers that an honest server would have: the last one counts.
func (v *impostor) inSequence(frame []byte) []byte {
	d := descriptorOf(&messages.ServerFrame{}).Fields()
	frame = appendField(frame, d.ByName("received"), v.received)
	frame = appendField(frame, d.ByName("first"), v.sent+1)
	v.count(frame)
	return frame
}
