package queue

import (
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name string
		seq  int64
		kind Kind
		ok   bool
	}{
		{"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-lock-0000000007", 7, Exclusive, true},
		{"_c_0f0b2a2c6c2e4a4e8f0f0123456789ab-lock-0000000008", 8, Exclusive, true}, // go-zookeeper
		{"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-lease-0000000009", 9, Exclusive, true},
		{"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-__READ__0000000010", 10, Shared, true},
		{"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-__WRIT__0000000011", 11, Exclusive, true},
		{"da57cafe00000000000000000000beef__lock__0000000012", 12, Exclusive, true},
		{"da57cafe00000000000000000000beef__rlock__0000000013", 13, Shared, true},
		{"x-72057594037927936-0000000014", 14, Exclusive, true},
		{"x--20-0000000015", 15, Exclusive, true},
		{"x-123--000000016", -16, Exclusive, true},
		{"lock-0000000001", 0, 0, false},
		{"-lock-0000000017", 17, Exclusive, true},
		{"a-lock-2147483647", 2147483647, Exclusive, true},
		{"a-lock--2147483648", -2147483648, Exclusive, true},
		{"a-lock-4294967296", 0, 0, false},
		{"a-lock-", 0, 0, false},
		{"a-lock-12", 0, 0, false},
		{"a-lock-00000000x1", 0, 0, false},
		{"a-lock-+000000001", 0, 0, false},
		{"0-foreign", 0, 0, false},
		{"x-", 0, 0, false},
		{"x-0000000001", 0, 0, false},
		{"", 0, 0, false},
		{"lease_holder", 0, 0, false},
	} {
		seq, kind, ok := Parse(c.name)
		if ok != c.ok || ok && (seq != c.seq || kind != c.kind) {
			t.Errorf("Parse(%q) = %d, %d, %v; want %d, %d, %v", c.name, seq, kind, ok, c.seq, c.kind, c.ok)
		}
	}
}

func TestIsContender(t *testing.T) {
	for name, want := range map[string]bool{
		"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-lock-0000000007":  true,
		"da57cafe00000000000000000000beef__lock__0000000012":       true,
		"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-north-0000000007": true,
		"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-north-000000000x": false,
		"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab":                  false,
		"_c_0000000007": false,
		"config":        false,
		"":              false,
	} {
		if IsContender(name) != want {
			t.Errorf("%q: %v, want %v", name, !want, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-lock-0000000007")
	f.Add("x--1--2147483648")
	f.Fuzz(func(t *testing.T, name string) {
		Parse(name)
		IsContender(name)
	})
}

func TestMarker(t *testing.T) {
	for name, want := range map[string]string{
		"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-lock-0000000007":    "-lock-",
		"_c_0f0b2a2c6c2e4a4e8f0f0123456789ab-lock-0000000008":        "-lock-",
		"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-__READ__000000001":  "",
		"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-__READ__0000000010": "__READ__",
		"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-latch-0000000001":   "-latch-",
		"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-north-0000000007":   "-north-",
		"da57cafe00000000000000000000beef__rlock__0000000013":        "__rlock__",
		"x-72057594037927936-0000000014":                             "x-",
		"config":                                                     "",
	} {
		if marker, ok := Marker(name); marker != want || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", name, marker, ok, want)
		}
	}
}

// A name of the library has the UUID and the number that it was made of, and no other form of name
// has a UUID.
func TestUUID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var uuid [16]byte
		copy(uuid[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid"))
		seq := rapid.Int64Range(-1<<31, lastSeq).Draw(t, "seq")
		name := WithSeq(Prefix(uuid, LockMarker), seq)
		got, ok := UUID(name)
		number, _, contends := Parse(name)
		if !ok || got != uuid || !contends || number != seq {
			t.Fatalf("%s: %x, %v; %d, %v", name, got, ok, number, contends)
		}
		i := rapid.IntRange(0, len(protected)+uuidLen-1).Draw(t, "i")
		if _, ok := UUID(name[:i] + "g" + name[i+1:]); ok {
			t.Fatalf("%s with a g at %d has a UUID", name, i)
		}
		if _, ok := UUID(name[:i] + name[i+1:]); ok {
			t.Fatalf("%s without byte %d has a UUID", name, i)
		}
	})
	for _, name := range []string{"", protected, "_c_0f0b2a2c6c2e4a4e8f0f0123456789ab-lock-0000000008", // zk.Lock
		"da57cafe00000000000000000000beef__lock__0000000012", "x-72057594037927936-0000000014"} {
		if uuid, ok := UUID(name); ok {
			t.Errorf("%s: %x", name, uuid)
		}
	}
}

func TestIsKazooLease(t *testing.T) {
	for name, want := range map[string]bool{
		"da57cafe00000000000000000000beef":  true,
		"da57cafe00000000000000000000bee":   false,
		"da57cafe00000000000000000000beefa": false,
		"da57cafe-0000000000000000000beef":  false,
		"Da57cafe00000000000000000000beef":  false,
		"":                                  false,
	} {
		if IsKazooLease(name) != want {
			t.Errorf("%q: %v, want %v", name, !want, want)
		}
	}
}
