package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors/remote"
)

func TestRules(t *testing.T) {
	rules, err := parseRules(`
# comment
allow spiffe://prod/backup /locks/backup acquire,inspect
deny  *                    /locks/secret *
allow spiffe://prod/*      /locks        acquire,change
allow *                    /             inspect
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		identity, path string
		verb           remote.Verb
		line           int // 0 is none
	}{
		{"spiffe://prod/backup", "/locks/backup", "acquire", 3},
		{"spiffe://prod/backup", "/locks/backup/x", "inspect", 3},
		{"spiffe://prod/backup", "/locks/backups", "inspect", 6},
		{"spiffe://prod/backup", "/locks/backup", "change", 5},
		{"spiffe://prod/web", "/locks/secret", "acquire", 4},
		{"spiffe://prod/web", "/locks/secret/x", "inspect", 4},
		{"spiffe://prod/web", "/locks/secrets", "acquire", 5},
		{"spiffe://product/web", "/locks/x", "acquire", 0},
		{"spiffe://prod/web", "/other", "acquire", 0},
		{"", "/other", "inspect", 6},
		{"", "/", "inspect", 6},
		{"", "/locks", "acquire", 0},
	} {
		r, found := decide(rules, c.identity, c.path, c.verb)
		if r.line != c.line || found != (c.line > 0) {
			t.Errorf("%q %s %s: line %d, %v; want %d", c.identity, c.verb, c.path, r.line, found, c.line)
		}
	}
}

func TestRuleErrors(t *testing.T) {
	for text, want := range map[string]string{
		"allow a /b":                 "line 1: \"allow a /b\": it must be",
		"\n\npermit a /b acquire":    "line 3: ",
		"allow a b acquire":          `path "b" must begin with /`,
		"allow a /b/ acquire":        "/b/",
		"allow a /b acquire,delete":  `verb "delete": accepted is acquire, inspect, change`,
		"allow a* /b acquire,":       `verb ""`,
		"allow a*b /c acquire":       "at the end only",
		"allow a /b acquire inspect": "it must be",
	} {
		if _, err := parseRules(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The rules are read again when the file has changed, and those before count on if it cannot be used.
func TestRulesAreReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("allow a / *")
	said := ""
	a, err := openAllowFile(file, func(string, ...any) { said += "x" })
	if err != nil {
		t.Fatal(err)
	}
	may := func(identity string) bool {
		a.looked = time.Time{} // as if a second had passed
		return a.allow(remote.Peer{Name: identity}, "/b", remote.VerbAcquire) == nil
	}
	if !may("a") || may("bb") {
		t.Error("the first rules")
	}
	write("allow bb / *")
	if may("a") || !may("bb") || said != "" {
		t.Errorf("the changed rules, %q", said)
	}
	write("nonsense")
	if may("a") || !may("bb") || !may("bb") || said != "x" {
		t.Errorf("rules that cannot be used, %q", said)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if may("a") || !may("bb") || said != "xx" {
		t.Errorf("no file, %q", said)
	}
}

func TestCheckAllow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(file, []byte("allow a /b acquire\ndeny * / inspect\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]int{"a acquire /b/c": 0, "b acquire /b": exitRefused, "a inspect /b": exitRefused, "a": exitUsage, "a take /b": exitUsage, "a acquire b": exitUsage} {
		if code, err := checkAllow(file, strings.Fields(args)); code != want {
			t.Errorf("%q: code %d, %v; want %d", args, code, err, want)
		}
	}
	if code, err := checkAllow(file+"x", strings.Fields("a acquire /b")); code != exitUsage || err == nil {
		t.Errorf("code %d, %v", code, err)
	}
}
