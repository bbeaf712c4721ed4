package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/sample"
)

// TestPlantedCompile checks that each planted fault still applies to the code, and compiles, together
// with faults in other files. The command in planted checks that the simulation finds each of them.
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
	sampled := sample.OneIn(t, 400) // by habit mostly none: a compilation takes six seconds
	var all []overlay
	for _, patch := range plantedPatches(t) {
		replace, err := applyPlanted(git, root, patch, t.TempDir())
		switch {
		case err != nil:
			t.Errorf("%s: %v", patch, err)
		case sampled():
			all = addToFirst(all, patch, replace)
		}
	}
	for _, o := range all {
		if out, err := o.compile(root, t.TempDir()); err != nil {
			t.Errorf("%s: %v: %s", strings.Join(o.patches, ", "), err, out)
		}
	}
}

// overlay are patches of different files, which compile together.
type overlay struct {
	patches []string
	replace map[string]string // the path of a file, and of the patched file
}

// applyPlanted writes the files that a patch changes below dir, and applies it to them. It returns where
// they are, by the path of each in the tree.
func applyPlanted(git, root, patch, dir string) (map[string]string, error) {
	text, err := os.ReadFile(patch)
	if err != nil {
		return nil, err
	}
	replace := map[string]string{}
	for _, m := range patchedFile.FindAllStringSubmatch(string(text), -1) {
		path, original := filepath.Join(dir, m[1]), filepath.Join(root, m[1])
		content, err := os.ReadFile(original)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err == nil {
			err = os.WriteFile(path, content, 0o644)
		}
		if err != nil {
			return nil, err
		}
		replace[original] = path
	}
	apply := exec.Command(git, "apply", "--whitespace=nowarn", "-")
	apply.Dir, apply.Stdin = dir, bytes.NewReader(text)
	if out, err := apply.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return replace, nil
}

// addToFirst adds a patch to the first overlay that has none of its files.
func addToFirst(all []overlay, patch string, replace map[string]string) []overlay {
	i := slices.IndexFunc(all, func(o overlay) bool { return !o.changesAny(replace) })
	if i < 0 {
		i, all = len(all), append(all, overlay{replace: map[string]string{}})
	}
	all[i].patches = append(all[i].patches, patch)
	maps.Copy(all[i].replace, replace)
	return all
}

// changesAny reports whether the overlay has one of the files already.
func (o overlay) changesAny(files map[string]string) bool {
	for file := range files {
		if o.replace[file] != "" {
			return true
		}
	}
	return false
}

// compile compiles the packages that the patches change.
func (o overlay) compile(root, dir string) (output []byte, err error) {
	content, err := json.Marshal(map[string]any{"Replace": o.replace})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return nil, err
	}
	packages := map[string]bool{}
	for file := range o.replace {
		packages[filepath.Dir(file)] = true
	}
	build := exec.Command("go", slices.Concat([]string{"build", "-overlay", path}, slices.Sorted(maps.Keys(packages)))...)
	build.Dir = root
	return build.CombinedOutput()
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
