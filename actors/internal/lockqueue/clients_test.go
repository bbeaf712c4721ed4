package lockqueue

import "testing"

func TestClientOf(t *testing.T) {
	for name, want := range map[string]clients{
		"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-lock-0000000007":    curators,
		"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-__WRIT__0000000007": curators,
		"_c_0f0b2a2c-6c2e-4a4e-8f0f-0123456789ab-latch-0000000007":   curators,
		"da57cafe00000000000000000000beef__lock__0000000012":         unknownToCurators,
		"da57cafe00000000000000000000beef__rlock__0000000012":        unknownToCurators,
		"x-72057594037927936-0000000014":                             unknownToCurators,
		"_c_0f0b2a2c6c2e4a4e8f0f0123456789ab-lock-0000000008":        0, // go-zookeeper
		"da57cafe00000000000000000000beef-lock-0000000012":           0, // kazoo with Curator's names
		Incarnation{1}.prefix(1, "-lock-") + "0000000001":            0, // this library
		"_c_": 0,
		"":    0,
	} {
		if got := clientOf(name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}
