package embedded

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// decoder reads jute records. The first malformed field sets bad and every
// later read returns a zero value, so callers check once, at the end.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if d.bad || n < 0 || n > len(d.b) {
		d.bad = true
		return nil
	}
	head := d.b[:n]
	d.b = d.b[n:]
	return head
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return b != nil && b[0] != 0
}

func (d *decoder) int() int32 {
	b := d.take(4)
	if b == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

func (d *decoder) long() int64 {
	b := d.take(8)
	if b == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// buffer returns a copy, because the frame's memory is reused. Length -1 is nil.
func (d *decoder) buffer() []byte {
	n := d.int()
	if n == -1 || d.bad {
		return nil
	}
	b := d.take(int(n))
	if d.bad {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

// string treats jute's null (length -1) as malformed: no request has a use
// for it, and ZooKeeper answers it with a marshalling error too.
func (d *decoder) string() string {
	return validText(d.take(int(d.int())))
}

// nullableString is for the few fields where null has a meaning.
func (d *decoder) nullableString() string {
	n := d.int()
	if n == -1 {
		return ""
	}
	return validText(d.take(int(n)))
}

// validText decodes UTF-8 as Java does: what is malformed becomes U+FFFD.
func validText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// count reads a vector's length. A negative one is an empty vector. elemSize
// is the least an element takes, so that a short frame cannot ask for a large
// allocation.
func (d *decoder) count(elemSize int) int {
	n := int(d.int())
	if n < 0 {
		return 0
	}
	if n > len(d.b)/elemSize {
		d.bad = true
		return 0
	}
	return n
}

// strings takes null for malformed, as string does.
func (d *decoder) strings() []string {
	if len(d.b) >= 4 && int32(binary.BigEndian.Uint32(d.b)) == -1 {
		d.bad = true
	}
	n := d.count(4)
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.string())
	}
	return list
}

func (d *decoder) acls() []acl {
	n := d.count(12)
	list := make([]acl, 0, n)
	for range n {
		list = append(list, acl{perms: d.int(), id: identity{scheme: d.string(), id: d.string()}})
	}
	return list
}

// encoder appends jute records to b.
type encoder struct{ b []byte }

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

func (e *encoder) int(v int32)  { e.b = binary.BigEndian.AppendUint32(e.b, uint32(v)) }
func (e *encoder) long(v int64) { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) }

func (e *encoder) buffer(v []byte) {
	if v == nil {
		e.int(-1)
		return
	}
	e.int(int32(len(v)))
	e.b = append(e.b, v...)
}

func (e *encoder) string(v string) {
	e.int(int32(len(v)))
	e.b = append(e.b, v...)
}

func (e *encoder) strings(list []string) {
	e.int(int32(len(list)))
	for _, v := range list {
		e.string(v)
	}
}

func (e *encoder) acls(list []acl) {
	e.int(int32(len(list)))
	for _, a := range list {
		e.int(a.perms)
		e.string(a.id.scheme)
		e.string(a.id.id)
	}
}

// begin reserves the length field of a frame; end fills it in.
func (e *encoder) begin() (start int) {
	start = len(e.b)
	e.int(0)
	return start
}

func (e *encoder) end(start int) {
	binary.BigEndian.PutUint32(e.b[start:], uint32(len(e.b)-start-4))
}
