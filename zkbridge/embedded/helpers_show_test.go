package embedded_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// unpack decodes jute; it fails the test where the input is too short.
type unpack struct {
	t testing.TB
	b []byte
}

func (d *unpack) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.t.Fatalf("truncated: %d of %d bytes", len(d.b), n)
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *unpack) byte() byte  { return d.take(1)[0] }
func (d *unpack) int() int32  { return int32(binary.BigEndian.Uint32(d.take(4))) }
func (d *unpack) long() int64 { return int64(binary.BigEndian.Uint64(d.take(8))) }
func (d *unpack) bytes() []byte {
	n := d.int()
	if n == -1 {
		return nil
	}
	return d.take(int(n))
}
func (d *unpack) string() string { return string(d.bytes()) }
func (d *unpack) strings() string {
	list := make([]string, d.int())
	for i := range list {
		list[i] = d.string()
	}
	slices.Sort(list)
	return fmt.Sprint(list)
}

// stat renders all fields. owner returns the names of sessions. Of the times it only checks that
// they are plausible.
func (d *unpack) stat(owner func(int64) string) string {
	czxid, mzxid, ctime, mtime := d.long(), d.long(), d.long(), d.long()
	version, cversion, aversion, eph := d.int(), d.int(), d.int(), owner(d.long())
	length, children, pzxid := d.int(), d.int(), d.long()
	age := time.Since(time.UnixMilli(ctime))
	timed := ctime == 0 && mtime == 0 || mtime >= ctime && age > -time.Minute && age < time.Hour
	return fmt.Sprintf("{c=%d m=%d p=%d v=%d cv=%d av=%d eph=%s len=%d children=%d times=%v}",
		czxid, mzxid, pzxid, version, cversion, aversion, eph, length, children, timed)
}

// show renders a reply.
func show(t testing.TB, op embedded.Op, r reply, owner func(int64) string) string {
	var s strings.Builder
	fmt.Fprintf(&s, "zxid=%d err=%d", r.zxid, r.err)
	d := unpack{t: t, b: r.body}
	if r.err != 0 {
		if len(d.b) > 0 {
			fmt.Fprintf(&s, " and %d bytes", len(d.b))
		}
		return s.String()
	}
	switch op {
	case embedded.OpCreate, embedded.OpSync:
		s.WriteString(" " + d.string())
	case embedded.OpCreate2, embedded.OpCreateContainer, embedded.OpCreateTTL:
		s.WriteString(" " + d.string() + d.stat(owner))
	case embedded.OpExists, embedded.OpSetData, embedded.OpSetACL:
		s.WriteString(d.stat(owner))
	case embedded.OpGetData:
		fmt.Fprintf(&s, " %q%s", d.bytes(), d.stat(owner))
	case embedded.OpGetChildren, embedded.OpGetEphemerals:
		s.WriteString(d.strings())
	case embedded.OpGetChildren2:
		s.WriteString(d.strings() + d.stat(owner))
	case embedded.OpGetACL:
		for range d.int() {
			fmt.Fprintf(&s, " %d:%s:%s", d.int(), d.string(), d.string())
		}
		s.WriteString(d.stat(owner))
	case embedded.OpGetAllChildrenNumber, embedded.OpAddWatch:
		fmt.Fprintf(&s, " %d", d.int())
	case embedded.OpWhoAmI:
		ids := make([]string, d.int()) // a set, in no order
		for i := range ids {
			ids[i] = d.string() + ":" + d.string()
		}
		slices.Sort(ids)
		fmt.Fprint(&s, ids)
	case embedded.OpMulti, embedded.OpMultiRead:
		showMulti(&s, &d, owner)
	}
	if len(d.b) > 0 {
		fmt.Fprintf(&s, " and %d bytes", len(d.b))
	}
	return s.String()
}

func showMulti(s *strings.Builder, d *unpack, owner func(int64) string) {
	for {
		op, done, err := d.int(), d.byte(), d.int()
		fmt.Fprintf(s, " [%d %d %d", op, done, err)
		if done != 0 {
			s.WriteString("]")
			return
		}
		switch embedded.Op(op) {
		case -1:
			fmt.Fprintf(s, " %d", d.int())
		case embedded.OpCreate:
			s.WriteString(" " + d.string())
		case embedded.OpCreate2:
			s.WriteString(" " + d.string() + d.stat(owner))
		case embedded.OpSetData:
			s.WriteString(d.stat(owner))
		case embedded.OpGetData:
			fmt.Fprintf(s, " %q%s", d.bytes(), d.stat(owner))
		case embedded.OpGetChildren:
			s.WriteString(d.strings())
		}
		s.WriteString("]")
	}
}
