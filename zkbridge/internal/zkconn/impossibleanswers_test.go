package zkconn

import (
	"encoding/binary"
	"testing"
)

// A list of a negative length, and a stat whose zxids the server cannot have yet, are no answers. A lock
// would take its node for one of a former directory, and make it again and again.
func TestImpossibleAnswers(t *testing.T) {
	stat := func(czxid int64) []byte {
		return append(binary.BigEndian.AppendUint64(nil, uint64(czxid)), make([]byte, 60)...)
	}
	for name, c := range map[string]struct {
		body []byte
		bad  bool
	}{
		"none":              {append([]byte{0, 0, 0, 0}, stat(5)...), false},
		"new leader's":      {append([]byte{0, 0, 0, 0}, stat(1<<32)...), false},
		"of the future":     {append([]byte{0, 0, 0, 0}, stat(1<<40)...), true},
		"a negative length": {append([]byte{0xff, 0xff, 0xff, 0xff}, stat(5)...), true},
	} {
		r := reader{rest: c.body, newest: 7}
		if readListing(&r); r.bad != c.bad {
			t.Errorf("%s: bad is %v", name, r.bad)
		}
	}
}
