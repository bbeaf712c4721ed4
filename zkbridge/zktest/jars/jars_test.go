package jars

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestClassPath(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		more  []string
		want  string // what the class path ends with, or the error
	}{
		{"nothing", nil, nil, "no zookeeper.jar in DIR"},
		{"other jars", []string{"zookeeper-jute-3.8.0.jar"}, nil, "no zookeeper.jar in DIR"},
		{"debian", []string{"zookeeper.jar", "zookeeper-3.8.0.jar"}, nil, ":DIR/zookeeper-jute.jar:DIR/zookeeper.jar"},
		{"debian with another", []string{"zookeeper.jar", "guava.jar"}, []string{"guava"}, "DIR/zookeeper.jar:DIR/guava.jar"},
		{"debian without another", []string{"zookeeper.jar", "guava-32.jar"}, []string{"guava"}, "no guava.jar in DIR"},
		{"apache", []string{"zookeeper-3.9.3.jar"}, nil, "DIR/*"},
		{"apache with another", []string{"zookeeper-3.9.3.jar", "guava-32.jar"}, []string{"guava"}, "DIR/*"},
		{"apache without another", []string{"zookeeper-3.9.3.jar"}, []string{"guava"}, "no guava.jar in DIR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range c.files {
				if err := os.WriteFile(filepath.Join(dir, f), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := classPath(dir, c.more)
			if err != nil {
				got = err.Error()
			}
			if want := strings.ReplaceAll(c.want, "DIR", dir); !strings.HasSuffix(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	dir := t.TempDir()
	if got := version(dir, "guava"); got != "" {
		t.Errorf("version %q without a jar", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "guava-32.0.1-jre.jar"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := version(dir, "guava"); got != "32.0.1-jre" {
		t.Errorf("version %q", got)
	}
}

// Java reads the jars that a manifest names right after the jar, before the rest of the class path.
func TestJarsAreBehindThoseOfTheirManifests(t *testing.T) {
	path, err := ClassPath(Curator...)
	if err != nil || strings.HasSuffix(path, "*") {
		t.Skipf("the jars are not in Debian's layout: %s %v", path, err)
	}
	var all []string
	for file := range strings.SplitSeq(path, ":") {
		all = append(all, filepath.Base(file))
	}
	for i, name := range all {
		for _, other := range manifestPath(t, filepath.Join(Dir(), name)) {
			if other := filepath.Base(other); slices.Contains(all, other) && !slices.Contains(all[:i], other) {
				t.Errorf("%s is before %s, which its manifest names", name, other)
			}
		}
	}
}

// manifestPath returns the Class-Path of a jar's manifest, whose lines go on after a space.
func manifestPath(t *testing.T, jar string) []string {
	r, err := zip.OpenReader(jar)
	if os.IsNotExist(err) {
		return nil // not all versions of ZooKeeper need it
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := r.Open("META-INF/MANIFEST.MF")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.ReplaceAll(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n ", "")
	for line := range strings.Lines(lines) {
		if list, ok := strings.CutPrefix(line, "Class-Path:"); ok {
			return strings.Fields(list)
		}
	}
	return nil
}
