package manager

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestHolderRecord(t *testing.T) {
	m := &Manager{holder: newHolderRecord()}
	host, _ := os.Hostname()
	for owner, want := range map[string]string{
		"":                         "",
		"worker 7":                 "worker 7",
		`a "quoted" \ name` + "\n": `a "quoted" \ name` + "\n",
		"naïve <&>":                "naïve <&>",
		"\xff\xfe":                 "\ufffd\ufffd",
		strings.Repeat("x", 1<<20): strings.Repeat("x", 253) + "…",
		strings.Repeat("é", 200):   strings.Repeat("é", 126) + "…",
	} {
		data := m.NodeData(nil, owner)
		h, ok := ParseHolder(data)
		if !ok || h.Owner != want || h.Host != host || h.PID != os.Getpid() || h.Program != "manager.test" {
			t.Errorf("%.40q: %.200s is %+.200v, %v", owner, data, h, ok)
		}
		if !json.Valid(data) || len(data) > 1500 {
			t.Errorf("%.40q: %d bytes, %.200s", owner, len(data), data)
		}
	}
	if data := (&Manager{}).NodeData(nil, "me"); data != nil {
		t.Errorf("%s, want no data without a record", data)
	}
	if one, two := m.NodeData(nil, ""), m.NodeData(nil, ""); &one[0] != &two[0] {
		t.Error("requests without an owner do not share the record")
	}
}

func TestParseHolder(t *testing.T) {
	for data, want := range map[string]Holder{
		`{"host":"h","pid":7,"program":"p","owner":"o"}`: {"h", 7, "p", "o", "", ""},
		`{"identity":"spiffe://a/b"}`:                    {Identity: "spiffe://a/b"},
		`{"pid":7,"data":"{\"a\":1}"}`:                   {PID: 7, Data: `{"a":1}`},
		`{"data":"text"}`:                                {},
		`{"pid":7,"data":1}`:                             {},
		`{"pid":7}`:                                      {PID: 7},
		`{"pid":7} `:                                     {PID: 7},
		`{"pid":7}}`:                                     {},
		`{"pid":7}{"pid":8}`:                             {},
		`{"pid":7`:                                       {},
		`{"pid":"7"}`:                                    {},
		`{"pid":7,"other":1}`:                            {},
		`{}`:                                             {},
		`null`:                                           {},
		`[{"pid":7}]`:                                    {},
		`10.0.0.1`:                                       {},
		`__REVOKE__`:                                     {},
		"":                                               {},
		"{\x00":                                          {},
		`{"pid":99999999999999999999}`:                   {},
	} {
		if h, ok := ParseHolder([]byte(data)); h != want || ok != (want != Holder{}) {
			t.Errorf("%s: %+v, %v", data, h, ok)
		}
	}
}

func TestWithIdentity(t *testing.T) {
	for _, c := range []struct{ data, identity, want string }{
		{`{"pid":7}`, "me", `{"pid":7,"identity":"me"}`},
		{`{"pid":7,"identity":"root"}`, "me", `{"pid":7,"identity":"me"}`},
		{`{"pid":7,"IDENTITY":"root"}`, "", `{"pid":7}`},
		{`{"identity":"root"}`, "", `{}`},
		{`{"pid":7,"data":"x"}`, "", `{"pid":7,"data":"x"}`},
		{"", "me", `{"identity":"me"}`},
		{"", "", ""},
		{"10.0.0.1", "me", "10.0.0.1"},
		{`{"other":7}`, "me", `{"other":7}`},
		{"", strings.Repeat("x", 1<<10), `{"identity":"` + strings.Repeat("x", 253) + `…"}`},
	} {
		if got := string(WithIdentity([]byte(c.data), c.identity)); got != c.want {
			t.Errorf("%s for %.20q: %s, want %s", c.data, c.identity, got, c.want)
		}
	}
}

func FuzzParseHolder(f *testing.F) {
	f.Add([]byte(`{"host":"h","pid":7,"program":"p","owner":"o"}`))
	f.Fuzz(func(t *testing.T, data []byte) { ParseHolder(data) })
}
