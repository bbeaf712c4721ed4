package partition

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever the data of a node are, a record has only partitions of its group, and is read as it was
// written.
func TestRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "partitions")
		bits := rapid.SliceOfN(rapid.Byte(), 0, 10)
		wrote := Record{Partitions: n, Member: FormatID(rapid.Uint64().Draw(t, "id")), Leads: bits.Draw(t, "leads"), Waits: bits.Draw(t, "waits")}
		leads := slices.Collect(wrote.Leads.All())
		read, id, is := Parse(wrote.Encode())
		if !is || FormatID(id) != wrote.Member {
			t.Fatalf("%+v is read as %+v, %x, %v", wrote, read, id, is)
		}
		want := slices.DeleteFunc(leads, func(p int) bool { return p >= n })
		if got := slices.Collect(read.Leads.All()); !slices.Equal(got, want) {
			t.Fatalf("of %d partitions %v are read, want %v", n, got, want)
		}
		for p := range read.Waits.All() {
			if p >= n {
				t.Fatalf("partition %d of %d", p, n)
			}
		}
	})
	for _, no := range []string{"", "{", "null", "[]", `{"partitions":0,"member":"1"}`, `{"partitions":70000,"member":"1"}`, `{"partitions":4,"member":"x"}`,
		`{"partitions":4,"member":"11112222333344445"}`, `{"partitions":4,"member":"1","leads":7}`, strings.Repeat("[", 100_000)} {
		if r, _, is := Parse([]byte(no)); is {
			t.Errorf("%.50q is read as %+v", no, r)
		}
	}
}

// A record is the same however the data say it, and other data are another one.
func TestSameRecord(t *testing.T) {
	written := (&Record{Partitions: 4, Member: FormatID(7), Leads: Bits{3}, Waits: Bits{4}, Data: []byte("x")}).Encode()
	for data, want := range map[string]bool{
		string(written): true,
		`{"data":"eA==", "member":"7", "identity":"x", "waits":"BA==", "partitions":4, "leads":"Aw=="}`: true,
		`{"partitions":4,"member":"8","leads":"Aw==","waits":"BA==","data":"eA=="}`:                     false,
		`{"partitions":4,"member":"7","leads":"Aw==","waits":"BA=="}`:                                   false,
		`{"format":1}`: false,
		"__REVOKE__":   false,
		"":             false,
	} {
		if got := SameRecord([]byte(data), written); got != want {
			t.Errorf("%s is the same: %v", data, got)
		}
	}
}

// A member whose records a later version has written, or that has another number of partitions, is left out
// with an error that says so. Fields that this version does not know are no reason.
func TestOtherMembers(t *testing.T) {
	for data, want := range map[string]string{
		`{"format":2,"partitions":4,"member":"7","leads":{"ranges":[[0,3]]}}`: "format 2",
		`{"format":1,"groups":[1,2]}`:                                         "format 1",
		`{"partitions":5,"member":"7"}`:                                       "the group at /group has 5",
		`{"partitions":4,"member":"7","zone":"eu","x":1}`:                     "",
	} {
		r, id, is := Parse([]byte(data))
		if !is {
			t.Errorf("%s is no record", data)
		}
		v, err := NewView("/group", []MemberRecord{{ID: id, Record: r, Published: 1}}, 4)
		if text := fmt.Sprint(err); want == "" && err != nil || want != "" && !strings.Contains(text, want) || len(v.Members) > 0 != (want == "") {
			t.Errorf("%s: %d members, %v, want %q", data, len(v.Members), err, want)
		}
	}
}
