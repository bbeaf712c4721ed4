package partition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/check"
)

// MemberRecord is a member of the group, as its newest record shows it.
type MemberRecord struct {
	ID uint64
	Record
	// Published orders the records of all members: the transaction that has created the node.
	Published int64
}

// View is the state of a group of n partitions. Nothing writes to it.
type View struct {
	// Members are in the order of their ids.
	Members []MemberRecord
	// Leaders has the index of the member that leads each partition, or -1.
	Leaders []int32
}

// NewView returns the state of the group at path that the records of the members show. Several records may be of one member:
// the newest one counts. If two members say that they lead a partition, the one whose record is newer
// leads it: the other one has yet to publish that it does not, or that it has lost it.
//
// The error is that a member has another number of partitions, or records of a later version that this one
// cannot read; that member is left out.
func NewView(path string, all []MemberRecord, n int) (*View, error) {
	var wrong error
	newest := map[uint64]MemberRecord{}
	for _, m := range all {
		switch {
		case m.Format > 0:
			wrong = wrongFormat(path, m.Format)
			continue
		case m.Partitions != n:
			wrong = WrongCount(path, n, m.Partitions)
			continue
		}
		if known, is := newest[m.ID]; !is || known.Published < m.Published {
			newest[m.ID] = m
		}
	}
	v := &View{
		Members: slices.SortedFunc(maps.Values(newest), func(a, b MemberRecord) int { return cmp.Compare(a.ID, b.ID) }),
		Leaders: slices.Repeat([]int32{-1}, n),
	}
	for i, m := range v.Members {
		for p := range m.Leads.All() {
			if p < n && (v.Leaders[p] < 0 || v.Members[v.Leaders[p]].Published < m.Published) {
				v.Leaders[p] = int32(i)
			}
		}
	}
	return v, wrong
}

// WrongCount is the error of a number of partitions that is not the group's.
func WrongCount(path string, wanted, present int) error {
	return check.Invalid(fmt.Sprintf("%d partitions: the group at %s has %d, and the number cannot change", wanted, path, present))
}

// wrongFormat is the error of a record of a later version.
func wrongFormat(path string, format int) error {
	return check.Invalid(fmt.Sprintf("record of format %d of a member of %s: this version reads records of format 0 only; upgrade this process", format, path))
}

// sharing returns the members that share the partitions: those that are not leaving, or all if all are
// leaving.
func (v *View) sharing() []*MemberRecord {
	var all, stay []*MemberRecord
	for i := range v.Members {
		m := &v.Members[i]
		all = append(all, m)
		if !m.Leaving {
			stay = append(stay, m)
		}
	}
	if len(stay) == 0 {
		return all
	}
	return stay
}

// Find returns the newest record of a member, if there is one.
func (v *View) Find(id uint64) (m *MemberRecord, is bool) {
	i, is := slices.BinarySearchFunc(v.Members, id, func(m MemberRecord, id uint64) int { return cmp.Compare(m.ID, id) })
	if !is {
		return nil, false
	}
	return &v.Members[i], true
}
