package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestMessagesRoundTrip(t *testing.T) {
	l := load{path: "/a/b", clients: 3, locks: 2, acknowledged: true, ownObjects: true, sections: "/tmp/x", process: 7, recipe: semaphore, connections: 3, hold: 5, fresh: true}
	if got, err := parseLoad(roundTrip(t, l.message())); err != nil || got != l {
		t.Errorf("sent %+v, got %+v, %v", l, got, err)
	}
	sum := tally{ops: 3, total: 9, violations: 1}
	sum.latencies.count(5, 2)
	sum.latencies.count(700, 1)
	if got, err := parseTally(roundTrip(t, sum.message())); err != nil || !reflect.DeepEqual(got, sum) {
		t.Errorf("sent %+v, got %+v, %v", sum, got, err)
	}
}

// roundTrip writes and parses a message.
func roundTrip(t *testing.T, m message) message {
	t.Helper()
	got, err := parseMessage(m.String() + "\n")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestInvalidMessages(t *testing.T) {
	for line, want := range map[string]string{
		"error no such server": "no such server",
		"run from":             `"from"`,
		"result ops=many":      `ops="many"`,
		"result ops=1 total=1 violations=0 latencies=3":           `"3"`,
		"result ops=2 total=2 violations=0 latencies=3:1":         "1 latencies of 2",
		"result ops=1 total=1 violations=0 latencies=-1:1":        `"-1:1"`,
		"result ops=1 total=1 violations=0 latencies=123456789:1": `"123456789:1"`,
	} {
		m, err := parseMessage(line)
		if err == nil {
			// The order in which parseTally reads the numbers is random.
			for _, key := range []string{"ops", "total", "violations"} {
				if m.args[key] == "" {
					m.args[key] = "0"
				}
			}
			_, err = parseTally(m)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives error %v, want one with %s", line, err, want)
		}
	}
}
