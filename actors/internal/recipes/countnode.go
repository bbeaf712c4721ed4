package recipes

import (
	"encoding/binary"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/check"
)

// The node of a shared count is compatible with Curator's SharedCount: its data are four bytes, the
// highest first.

// CountData returns the data of a count.
func CountData(value int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(int32(value))) }

// ParseCount returns the value of a count's data.
func ParseCount(path string, data []byte) (int, error) {
	if len(data) != 4 {
		return 0, check.Invalid(fmt.Sprintf("count %s: its data are %d bytes, and must be 4", path, len(data)))
	}
	return int(int32(binary.BigEndian.Uint32(data))), nil
}
