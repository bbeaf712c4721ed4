package simulation

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlantedApply checks that each planted fault still applies to the code. The command in planted
// checks that the simulation finds each of them.
func TestPlantedApply(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	patches, err := filepath.Glob("planted/*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatalf("no patches: %v", err)
	}
	for _, patch := range patches {
		path, err := filepath.Abs(patch)
		if err != nil {
			t.Fatal(err)
		}
		check := exec.Command(git, "apply", "--check", path)
		check.Dir = filepath.Join("..", "..")
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", patch, err, out)
		}
	}
}

// TestPlantedAreListed checks that the README's table has each planted fault.
func TestPlantedAreListed(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	patches, err := filepath.Glob("planted/*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatalf("no patches: %v", err)
	}
	for _, patch := range patches {
		name := strings.TrimSuffix(filepath.Base(patch), ".patch")
		if !strings.Contains(string(readme), "\n| "+name+" | ") {
			t.Errorf("README.md does not say what finds %s", name)
		}
	}
}
