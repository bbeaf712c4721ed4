package zkconn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/go-zookeeper/zk"
)

func TestGarbledAnswers(t *testing.T) {
	ops := []zk.MultiResponse{{String: "/root/n"}, {}, {Stat: &zk.Stat{Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, Cversion: 6,
		Aversion: 7, EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11}}}
	b := appendText(appendOpHeader(nil, opCreate, false), "/root/n")
	b = appendOpHeader(appendOpHeader(b, opDelete, false), opSetData, false)
	for _, v := range []int64{1, 2, 3, 4, 5<<32 | 6, 7 << 32, 8<<32 | 9, 10 << 32} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	b = appendInt(b, 11)
	b = appendOpHeader(b, -1, true)
	r := reader{rest: b}
	if got, err := r.results("/root", []Op{{Path: "/n"}, {}, {}}); err != nil || r.bad || len(got) != 3 || got[0].String != "/n" || *got[2].Stat != *ops[2].Stat {
		t.Errorf("%v, %v, %+v", got, err, got[2].Stat)
	}
	r = reader{rest: b}
	if got, _ := r.results("/root", []Op{{Path: "/", Node: "n"}, {}, {}}); got[0].String != "n" {
		t.Errorf("the name of a node is %q", got[0].String)
	}
	for _, c := range []struct {
		whole []byte
		read  func(*reader)
	}{
		{b, func(r *reader) { r.results("", []Op{{Path: "/root/n"}, {}, {}}) }},
		{append(appendData(nil, []byte("data")), make([]byte, 68)...), func(r *reader) { r.data(); r.stat() }},
		{appendText(appendText(appendInt(nil, 2), "one"), "two"), func(r *reader) { r.texts() }},
	} {
		for n := range len(c.whole) + 1 {
			r := reader{rest: c.whole[:n]}
			if c.read(&r); r.bad != (n < len(c.whole)) {
				t.Errorf("%d of %d bytes: bad is %v", n, len(c.whole), r.bad)
			}
		}
	}
	unknown := reader{rest: appendOpHeader(appendOpHeader(nil, 99, false), -1, true)}
	if unknown.results("", make([]Op, 1)); !unknown.bad {
		t.Error("an operation 99 is accepted")
	}
	for _, length := range []int32{-2, math.MinInt32, math.MaxInt32} {
		r := reader{rest: append(appendInt(nil, length), make([]byte, 100)...)}
		if r.data(); !r.bad {
			t.Errorf("a length of %d bytes is accepted", length)
		}
		if r = (reader{rest: append(appendInt(nil, length), make([]byte, 100)...)}); length > 0 {
			if r.texts(); !r.bad {
				t.Errorf("%d names are accepted", length)
			}
		}
	}
}

// The connection does not keep the memory of a large answer.
func TestLargeAnswerIsNotKept(t *testing.T) {
	c, server := openedPipe(t, &Settings{})
	go io.Copy(io.Discard, server)
	replies := make(answers, 2)
	for _, name := range []string{"a", "b"} {
		c.send(encodeDelete("/"+name), replies.of(name))
	}
	c.deliver(t, server, 100, frame(1016, firstXid), frame(maxBody+17, firstXid+1))
	replies.expect(t, "a 1000 <nil>", fmt.Sprint("b ", maxBody+1, " <nil>"))
	if cap(c.body) > maxBody {
		t.Errorf("%d bytes are kept", cap(c.body))
	}
}

// The callback of a garbled answer gets no results.
func TestGarbledAnswerHasNoResults(t *testing.T) {
	c, server := openedPipe(t, &Settings{})
	go io.Copy(io.Discard, server)
	c.session.active.Store(c)
	var results []zk.MultiResponse
	var failure error
	zkClient{session: c.session}.Multi([]Op{{Kind: OpDelete, Path: "/n"}}, func(r []zk.MultiResponse, err error) { results, failure = r, err })
	body := appendInt(appendOpHeader(nil, opError, false), -101) // and no end
	answer := append(frame(16+len(body), firstXid)[:lengthSize+minFrame], body...)
	c.deliver(t, server, 100, answer)
	if results != nil || !errors.Is(failure, errGarbled) {
		t.Errorf("%+v, %v", results, failure)
	}
}

// A client does not believe that a server has made another node than it was asked for.
func TestAnotherNodeMade(t *testing.T) {
	for _, c := range []struct {
		made string
		root Chroot
		op   Op
		ok   bool
	}{
		{"/root/a/n", "/root", Op{Path: "/a/n"}, true},
		{"/root", "/root", Op{Path: "/"}, true},
		{"/root/a/n", "/root", Op{Path: "/a/m"}, false},
		{"/root/a/n", "/toor", Op{Path: "/a/n"}, false},
		{"/a/n1", "", Op{Path: "/a/n"}, false},
		{"/a/n1", "", Op{Path: "/a/n", Flags: zk.FlagSequence}, true},
		{"/a/n1", "", Op{Path: "/a", Node: "n", Flags: zk.FlagSequence}, true},
		{"/a/m1", "", Op{Path: "/a", Node: "n", Flags: zk.FlagSequence}, false},
		{"/b/n1", "", Op{Path: "/a", Node: "n", Flags: zk.FlagSequence}, false},
		{"/n1", "", Op{Path: "/", Node: "n", Flags: zk.FlagSequence}, true},
		{"", "", Op{Path: "/a", Node: "n", Flags: zk.FlagSequence}, false},
	} {
		r := reader{rest: appendText(nil, c.made)}
		if r.made(c.root, &c.op); r.bad == c.ok {
			t.Errorf("%q for %+v: bad is %v", c.made, c.op, r.bad)
		}
	}
}
