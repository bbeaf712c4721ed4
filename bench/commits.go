package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The peers of a comparison: this library at two commits. A worker of either is the bench of this tree, built with the
// library of the commit, so that both do the same.
const (
	oldPeer = "actorlock-old"
	newPeer = "actorlock-new"
)

// ofToday are the folders that each commit has from this tree: bench, and the package of the library that finds what it starts.
var ofToday = []string{"bench", "zkbridge/zktest/jars"}

// commitsIn returns the commits of OLD..NEW. Of OLD and OLD.. the second is empty: this tree.
func commitsIn(text string) (old, new string, err error) {
	old, new, _ = strings.Cut(text, "..")
	if old == "" {
		return "", "", fmt.Errorf("-compare %q: it must be OLD..NEW, or OLD alone", text)
	}
	for _, commit := range []string{old, new} {
		if commit == "" {
			continue
		}
		if _, err := git("rev-parse", "--verify", "--quiet", "--end-of-options", commit+"^{commit}"); err != nil {
			return "", "", fmt.Errorf("-compare %q: this repository has no commit %q", text, commit)
		}
	}
	return old, new, nil
}

// at returns the peer at a commit, or as this tree has it if the commit is empty.
func (p peer) at(commit, name string) peer {
	p.name, p.open = name, nil
	p.version = func() string {
		if commit == "" {
			return "this tree"
		}
		subject, _ := git("log", "-1", "--format=%h %s", commit)
		return subject
	}
	p.program = func(dir string) (func(addr string) *exec.Cmd, error) {
		binary := filepath.Join(dir, name)
		if err := buildAt(commit, filepath.Join(dir, name+"-source"), binary); err != nil {
			return nil, err
		}
		return func(addr string) *exec.Cmd { return exec.Command(binary, workerCommand, p.mode, addr) }, nil
	}
	return p
}

// buildAt builds the bench of this tree with the library of a commit. It writes the files of the commit to the
// folder. An empty commit is this tree.
func buildAt(commit, dir, binary string) error {
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	mod := "-mod=readonly"
	if commit == "" {
		dir = root
	} else {
		mod = "-mod=mod" // a library of another day may need other versions of what it uses
		if err := checkOut(root, commit, dir); err != nil {
			return err
		}
	}
	if _, err := call("go", "build", "-C", filepath.Join(dir, "bench"), mod, "-tags", "compare", "-o", binary, "."); err != nil {
		return fmt.Errorf("the bench of this tree does not build with the library of %s: %w", cmp.Or(commit, "this tree"), err)
	}
	return nil
}

// checkOut writes the files of a commit to a new folder, but those of ofToday as this tree has them.
func checkOut(root, commit, dir string) error {
	archive := dir + ".tar"
	if _, err := git("-C", root, "archive", "--output", archive, commit); err != nil {
		return err
	}
	defer os.Remove(archive)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if _, err := call("tar", "-x", "-f", archive, "-C", dir); err != nil {
		return err
	}
	for _, folder := range ofToday {
		folder = filepath.FromSlash(folder)
		if err := os.RemoveAll(filepath.Join(dir, folder)); err != nil {
			return err
		}
		if err := os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			return err
		}
	}
	return nil
}

func git(args ...string) (string, error) { return call("git", args...) }

// call runs a program, and returns its output. The error has the program's error output.
func call(name string, args ...string) (string, error) {
	var output, problems strings.Builder
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &output, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, problems.String())
	}
	return strings.TrimSpace(output.String()), nil
}
