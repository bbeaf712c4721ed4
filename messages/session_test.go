package messages

import "testing"

func TestFormatSession(t *testing.T) {
	for id, want := range map[int64]string{
		0:                    "0x0",
		72057594037927936:    "0x100000000000000",
		-1:                   "0xffffffffffffffff", // as Long.toHexString
		-9151314442816847871: "0x8100000000000001",
	} {
		if got := FormatSession(id); got != want {
			t.Errorf("%d: %s, want %s", id, got, want)
		}
	}
}
