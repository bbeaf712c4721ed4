package simulation

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/sample"
)

// TestPlantedCompile checks that each planted fault still applies to the code, and compiles. The
// command in planted checks that the simulation finds each of them.
func TestPlantedCompile(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	sampled := sample.OneIn(t, 50)
	for _, patch := range plantedPatches(t) {
		text, err := os.ReadFile(patch)
		if err != nil {
			t.Fatal(err)
		}
		dir, replace, packages := t.TempDir(), map[string]string{}, []string{}
		for _, m := range patchedFile.FindAllStringSubmatch(string(text), -1) {
			path := filepath.Join(dir, m[1])
			original, err := os.ReadFile(filepath.Join(root, m[1]))
			if err == nil {
				err = os.MkdirAll(filepath.Dir(path), 0o755)
			}
			if err == nil {
				err = os.WriteFile(path, original, 0o644)
			}
			if err != nil {
				t.Fatalf("%s: %v", patch, err)
			}
			replace[filepath.Join(root, m[1])] = path
			packages = append(packages, "./"+filepath.Dir(m[1]))
		}
		apply := exec.Command(git, "apply", "--whitespace=nowarn", "-")
		apply.Dir, apply.Stdin = dir, bytes.NewReader(text)
		if out, err := apply.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", patch, err, out)
			continue
		}
		if !sampled() {
			continue
		}
		overlay, path := map[string]any{"Replace": replace}, filepath.Join(dir, "overlay.json")
		content, err := json.Marshal(overlay)
		if err == nil {
			err = os.WriteFile(path, content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		compile := exec.Command("go", append([]string{"build", "-overlay", path}, packages...)...)
		compile.Dir = root
		if out, err := compile.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", patch, err, out)
		}
	}
}

// patchedFile matches the line of a patch with the path of a file.
var patchedFile = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)$`)

// plantedPatches returns the paths of the patches.
func plantedPatches(t *testing.T) []string {
	t.Helper()
	patches, err := filepath.Glob("planted/*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatalf("no patches: %v", err)
	}
	return patches
}

// TestPlantedAreListed checks that the README's table has each planted fault.
func TestPlantedAreListed(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, patch := range plantedPatches(t) {
		name := strings.TrimSuffix(filepath.Base(patch), ".patch")
		if !strings.Contains(string(readme), "\n| "+name+" | ") {
			t.Errorf("README.md does not say what finds %s", name)
		}
	}
}
