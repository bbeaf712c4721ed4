package zkconn

import (
	"fmt"
	"testing"
)

// An answer to a multiRead, by its parts: a czxid, names, or an error.
func multiReadAnswer(parts ...any) (b []byte) {
	for _, part := range parts {
		switch part := part.(type) {
		case int:
			b = appendData(appendOpHeader(b, opGetData, false), nil)
			stat := make([]byte, 68)
			stat[7] = byte(part)
			b = append(b, stat...)
		case []string:
			b = appendInt(appendOpHeader(b, opChildNames, false), int32(len(part)))
			for _, name := range part {
				b = appendText(b, name)
			}
		case ServerError:
			b = appendInt(appendOpHeader(b, opError, false), int32(part))
		}
	}
	return appendOpHeader(b, -1, true)
}

func TestListings(t *testing.T) {
	const noNode, noAuth = ServerError(-101), ServerError(-102)
	names := []string{"a", "b"}
	for _, c := range []struct {
		answer []byte
		want   string // the czxid, the names and the error of each read; the first has no names
		err    string
	}{
		{multiReadAnswer(3, 4, names, 4), "3 [] <nil>, 4 [a b] <nil>", "<nil>"},
		{multiReadAnswer(3, 4, names, 5), "3 [] <nil>, 0 [] <nil>", "<nil>"}, // made again meanwhile
		{multiReadAnswer(noNode, 4, noNode, noNode), "0 [] zk: node does not exist, 0 [] zk: node does not exist", "<nil>"},
		{multiReadAnswer(3, noNode, names, 4), "3 [] <nil>, 0 [] zk: node does not exist", "<nil>"},
		{multiReadAnswer(3, noAuth, noAuth, noAuth), "3 [] <nil>, 0 [] zk: not authenticated", "zk: not authenticated"},
		{multiReadAnswer(3, names, names, 4), "", "garbled"},
		{multiReadAnswer(3, 4), "", "garbled"},
		{nil, "", "garbled"},
	} {
		r := reader{rest: c.answer}
		reads := []DirectoryRead{{Path: "/a"}, {Path: "/b", WithNames: true}}
		err := r.listings(reads)
		if r.bad != (c.err == "garbled") {
			t.Errorf("%q: garbled %v", c.answer, r.bad)
		}
		var got string
		for i, read := range reads {
			if i > 0 {
				got += ", "
			}
			got += fmt.Sprint(read.Listing.Czxid, " ", read.Listing.Children, " ", read.Err)
		}
		if !r.bad && (got != c.want || fmt.Sprint(err) != c.err) {
			t.Errorf("%s, %v, want %s, %s", got, err, c.want, c.err)
		}
	}
}
