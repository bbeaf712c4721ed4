package partition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/actorlock/actorlock/actors/internal/check"
)

// Record is what a member publishes about itself: the data of its node in the list of members, as
// JSON. Of several records of one member the one whose node was created last counts.
type Record struct {
	// Format is 0. A later version whose records this one cannot read has a greater one.
	Format int `json:"format,omitempty"`
	// Partitions is how many partitions the group has, as the member knows it.
	Partitions int `json:"partitions"`
	// Member is the member's id, as hexadecimal text.
	Member string `json:"member"`
	// Leads has the partitions that the member leads, and Waits those that it waits for and shall
	// lead: the bit of partition 0 is the lowest one of the first byte.
	Leads Bits `json:"leads,omitempty"`
	Waits Bits `json:"waits,omitempty"`
	// Leaving says that the member ends its terms, and shall lead none.
	Leaving bool `json:"leaving,omitempty"`
	// Data are the data that the member has joined with.
	Data []byte `json:"data,omitempty"`
}

// Encode returns the data of the node.
func (r *Record) Encode() []byte {
	data, _ := json.Marshal(r) // of numbers, text and bytes: it cannot fail
	return data
}

// Parse returns the record in the data of a node; false if they are no record. Of one with a greater Format it
// returns only that.
func Parse(data []byte) (r Record, id uint64, is bool) {
	err := json.Unmarshal(data, &r)
	if r.Format > 0 { // also if other fields are not as in this version
		return Record{Format: r.Format}, 0, true
	}
	if err != nil || r.Partitions < 1 || r.Partitions > MaxPartitions {
		return Record{}, 0, false
	}
	id, err = strconv.ParseUint(r.Member, 16, 64)
	if err != nil {
		return Record{}, 0, false
	}
	r.Member = FormatID(id)
	r.Leads, r.Waits = r.Leads.within(r.Partitions), r.Waits.within(r.Partitions)
	return r, id, true
}

// SameRecord reports whether the data of a node are read as the record that was written to it.
func SameRecord(read, written []byte) bool {
	is, _, known := Parse(read)
	want, _, _ := Parse(written)
	return known && bytes.Equal(is.Encode(), want.Encode())
}

// FormatID returns a member's id as in a record.
func FormatID(id uint64) string { return fmt.Sprintf("%016x", id) }

// MaxPartitions bounds the partitions of a group: each member publishes two bits for each of them.
const MaxPartitions = 1 << 16

// maxRecord bounds a record, as the data of any node.
const maxRecord = 512 << 10

// CheckCount returns an error for a number of partitions that no group can have.
func CheckCount(n int) error {
	if n < 1 || n > MaxPartitions {
		return check.Invalid(fmt.Sprintf("%d partitions: it must be from 1 to %d", n, MaxPartitions))
	}
	return nil
}

// CheckPartition returns an error for a partition that a group of n does not have.
func CheckPartition(p, n int) error {
	if p < 0 || p >= n {
		return check.Invalid(fmt.Sprintf("partition %d: it must be from 0 to %d", p, n-1))
	}
	return nil
}

// CheckData returns an error for data of a member that are too large for a record.
func CheckData(data []byte, n int) error {
	if size := len(LargestRecord(data, n).Encode()); size > maxRecord {
		return check.Invalid(fmt.Sprintf("%d bytes of data: with the lists of %d partitions, a member's node would have %d bytes, and %d are accepted", len(data), n, size, maxRecord))
	}
	return nil
}

// LargestRecord returns a record of a member with the data that is as large as any.
func LargestRecord(data []byte, n int) *Record {
	return &Record{Partitions: n, Member: FormatID(0), Leads: NewBits(n), Waits: NewBits(n), Leaving: true, Data: data}
}
