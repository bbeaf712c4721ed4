package remote_test

import (
	"bytes"
	"slices"

	"github.com/actorlock/actorlock/messages"
	"google.golang.org/protobuf/proto"
)

// Inputs for the fuzz targets: what an attack or a foul play is tried with in each run.

// attackSeed is an input with a name.
type attackSeed struct {
	name  string
	input []byte
}

// script makes an input of steps.
type script []byte

func (s script) step(what byte, choices ...byte) script {
	return append(append(slices.Clip(s), what), choices...)
}

// short has the length of what follows in the two bytes that a tape has for it.
func short(n int) []byte { return []byte{byte(n >> 8), byte(n)} }

// send sends a message.
func (s script) send(m *messages.ClientMessage) script {
	frame := marshal(&messages.ClientFrame{Messages: []*messages.ClientMessage{m}})
	return append(s.step(stepInSequence, short(len(frame))...), frame...)
}

// flood sends a message n times in one frame.
func (s script) flood(n int, m *messages.ClientMessage) script {
	b := marshal(m)
	s = s.step(stepFlood, byte(n>>16), byte(n>>8), byte(n))
	return append(append(s, short(len(b))...), b...)
}

func marshal(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

// The cases that were found without a fuzzer. Those that a fuzzer has found are in testdata/fuzz.
func attackSeeds() []attackSeed {
	acquire := func(id uint64, path string, spec *messages.LockSpec, a *messages.Acquire) *messages.ClientMessage {
		a.RequestId = id
		return &messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{Path: path, Lock: spec, Acquire: a}}}
	}
	mutex := func(id uint64, path string) *messages.ClientMessage {
		return acquire(id, path, &messages.LockSpec{}, &messages.Acquire{})
	}
	question := func(id uint64, kind, path string) *messages.ClientMessage {
		return &messages.ClientMessage{What: &messages.ClientMessage_Question{Question: &messages.Question{Id: id, Kind: kind, Path: path, Lock: &messages.LockSpec{}}}}
	}
	release := func(id uint64) *messages.ClientMessage {
		return &messages.ClientMessage{What: &messages.ClientMessage_Release{Release: &messages.Release{RequestId: id}}}
	}
	begin := script(nil).step(stepOpen, 0).step(stepRenew)
	seeds := []attackSeed{
		{"a lock", begin.send(mutex(1, "/locks/0")).step(stepRenew).step(stepWait, 1).send(release(1)).step(stepBye)},
		{"a lock with a stream that is cut", begin.send(mutex(1, "/locks/0")).step(stepWait, 1).step(stepCut).step(stepOpen, 1).step(stepRenew).send(release(1))},
		{"a first frame by a resumed stream", begin.step(stepCut).step(stepOpen, 1).send(mutex(1, "/locks/0")).step(stepCut).step(stepOpen, 1).step(stepWait, 2)},
		{"questions", begin.send(question(1, "find", "/locks")).send(question(2, "observe", "/locks/0")).send(question(3, "inspect", "/")).step(stepWait, 2)},
		{"the same frame again and again", begin.send(mutex(1, "/locks/0")).step(stepAgain, 20).step(stepWait, 1)},
		{"another client's directory", begin.send(question(1, "revoke", "/honest/held/locks/x")).send(question(2, "inspect", "/honest/held")).
			send(mutex(3, "/honest/held")).send(mutex(4, "/honest/held/leases")).send(question(5, "revoke-holders", "/locks/../honest/held"))},
		{"520,000 empty requests", begin.flood(520_000, &messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{}}}).step(stepWait, 1)},
		{"thousands of withdrawals", begin.flood(9_000, &messages.ClientMessage{What: &messages.ClientMessage_Withdraw{Withdraw: 1}})},
		{"a client that does not read", begin.step(stepDeaf).flood(9_000, question(1, "none", "")).step(stepAgain, 3).step(stepWait, 4)},
	}
	many, texts := begin, begin
	for id := range uint64(60) {
		many = many.send(acquire(id+1, "/locks/2", &messages.LockSpec{Recipe: messages.Recipe_SEMAPHORE, Permits: 8_000}, &messages.Acquire{Permits: 8_000}))
	}
	for _, m := range []*messages.ClientMessage{
		acquire(1, "/locks/0", &messages.LockSpec{}, &messages.Acquire{Owner: "!"}), mutex(2, "/locks/!"), question(3, "find", "/locks/!"),
		acquire(4, "/locks/0", &messages.LockSpec{Recipe: messages.Recipe_SEMAPHORE, CountPath: "/locks/!"}, &messages.Acquire{})} {
		b := bytes.ReplaceAll(script(nil).send(m), []byte("!"), []byte("\xff"))
		texts = append(texts.step(stepOpen, 1), b...)
	}
	return append(seeds, attackSeed{"sixty requests of 8,000 permits", many}, attackSeed{"texts that are not UTF-8", texts})
}

func foulSeeds() []script {
	start := func(bits byte) script { return script{bits} }
	empty := marshal(&messages.ServerMessage{What: &messages.ServerMessage_Granted{Granted: &messages.Granted{}}})
	flood := append(append(start(0).step(foulWait, 2).step(foulFlood, 520_000>>16, 520_000>>8&0xff, 520_000&0xff), short(len(empty))...), empty...)
	return []script{
		flood.step(foulWait, 2),
		start(0).step(foulWait, 2).step(foulWait, 2),
		start(0).step(foulWait, 2).step(foulCut).step(foulWait, 3).step(foulForged),
		start(4).step(foulWait, 2).step(foulGrant, 0).step(foulGrant, 1).step(foulAgain, 3).step(foulWait, 2).step(foulRelease),
		start(6).step(foulRenewed).step(foulWait, 2).step(foulGrant, 0).step(foulWait, 4),
		start(0).step(foulWait, 2).step(foulEnded, byte(messages.Reason_CLOSED)).step(foulWait, 2).step(foulGoAway).step(foulWait, 2),
		start(7).step(foulWelcome, 0).step(foulForged).step(foulRenewed).step(foulWait, 1),
	}
}
