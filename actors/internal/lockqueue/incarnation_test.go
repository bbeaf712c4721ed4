package lockqueue

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors/queue"
	"pgregory.net/rapid"
)

var curatorName = regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-lock-$`)

func TestPrefixIsCuratorsAndReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in, other Incarnation
		copy(in[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "incarnation"))
		copy(other[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "other"))
		serial := rapid.Uint64Max(1<<62-1).Draw(t, "serial")
		prefix := in.prefix(serial, "-lock-")
		if !curatorName.MatchString(prefix) {
			t.Fatalf("%q has not Curator's form", prefix)
		}
		if got, ok := in.serial(prefix + "0000000001"); !ok || got != serial {
			t.Fatalf("serial(%q) = %d, %v; want %d", prefix, got, ok, serial)
		}
		other[6] = in[6] // part of this byte is the UUID's version
		if _, ok := other.serial(prefix + "0000000001"); ok && other != in {
			t.Fatalf("serial of %x finds one in %q of %x", other, prefix, in)
		}
	})
}

// Other programs may give any names to children of the directory. No such name has a serial of this
// process.
func TestNamesOfOthersHaveNoSerial(t *testing.T) {
	in := Incarnation{1, 2, 3, 4, 5, 6, 7, 8}
	own := in.prefix(9, "-lock-") + "0000000007"
	if serial, isOwn := in.serial(own); serial != 9 || !isOwn {
		t.Fatalf("serial(%q) = %d, %t", own, serial, isOwn)
	}
	const start, uuidLength = "_c_", 36
	uuid := strings.TrimPrefix(own, start)
	for _, name := range []string{
		"", "_", start, "_c_lock-0000000007", own[:len(start)+uuidLength-1], // shorter than a UUID
		uuid, "_x_" + uuid, "x" + own, // another beginning
		start + "g" + uuid[1:], start + "-" + uuid[1:], // no UUID
		start + uuid[:uuidLength-1] + "z" + uuid[uuidLength:],
		start + "f" + uuid[1:], // of another process
	} {
		if serial, isOwn := in.serial(name); isOwn {
			t.Errorf("serial(%q) = %d", name, serial)
		}
	}
}

func FuzzSerial(f *testing.F) {
	f.Add("_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-lock-0000000007")
	f.Add("_c_0f0b2a2c-lock-0000000007")
	f.Fuzz(func(t *testing.T, name string) { Incarnation{}.serial(name) })
}

// The names of leases have the number of permits if it is fixed, whatever the serial.
func TestPermitsOf(t *testing.T) {
	for rule, want := range map[*queue.Rule]int{
		new(queue.Leases(1)): 1, new(queue.Leases(3)): 3, new(queue.Leases(maxPermits)): maxPermits,
		new(queue.Leases(0)): 0, new(queue.Leases(maxPermits + 1)): 0, new(queue.Leases(math.MaxInt)): 0, new(queue.Mutex()): 0,
	} {
		s := New(rule, Incarnation{1})
		for _, serial := range []uint64{s.lastSerial + 1, s.lastSerial + 1<<permitsShift - 1} {
			name := s.incarnation.prefix(serial, "-lease-") + "0000000001"
			if got, ok := s.incarnation.serial(name); got != serial || !ok {
				t.Errorf("serial(%q) = %d, %t", name, got, ok)
			}
			if got := PermitsOf(name); got != want {
				t.Errorf("%q has %d permits, want %d", name, got, want)
			}
		}
	}
	for _, name := range []string{"", "_c_", "_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-lease-0000000007", // Curator
		"_c_0f0b2a2c6c2e4a4e8f0f0123456789ab-lease-0000000008", "_c_0f0b2a2c6c2e8a4e8f0f0123456789ab-lease-0000000008", "da57cafe00000000000000000000beef"} {
		if got := PermitsOf(name); got != 0 {
			t.Errorf("%q has %d permits", name, got)
		}
	}
}
