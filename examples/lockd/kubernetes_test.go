package main

import (
	"flag"
	"os"
	"regexp"
	"testing"
)

// The flags of the manifest are those of lockd. (Its fields were checked against the types of
// Kubernetes: see .github/FLEETS.md.)
func TestKubernetesManifest(t *testing.T) {
	text, err := os.ReadFile("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var o lockdFlags
	set := flag.NewFlagSet("lockd", flag.ContinueOnError)
	o.define(set)
	all := regexp.MustCompile(`(?m)^ +- -([a-z-]+)=(.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(all) < 5 {
		t.Fatalf("%d flags", len(all))
	}
	for _, f := range all {
		if err := set.Set(f[1], f[2]); err != nil {
			t.Errorf("-%s=%s: %v", f[1], f[2], err)
		}
	}
}
