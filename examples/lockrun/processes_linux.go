package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// running returns the processes of a group that /proc shows and that have not ended. It reports whether
// /proc can be read.
func running(group int) (all []groupMember, known bool) {
	known = eachProcess(func(p procEntry) {
		if p.group == group && !p.ended {
			all = append(all, groupMember{p.id, p.name})
		}
	})
	return all, known
}

// zombies returns the children of a process that have ended, and of whose ends it has not taken note.
func zombies(parent int) (all []int) {
	eachProcess(func(p procEntry) {
		if p.parent == parent && p.ended {
			all = append(all, p.id)
		}
	})
	return all
}

// procEntry is a process as /proc shows it.
type procEntry struct {
	id, parent, group int
	name              string
	ended             bool
}

// eachProcess calls f for each process. It reports whether /proc can be read.
func eachProcess(f func(p procEntry)) (known bool) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		return false
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may have any characters.
		number, rest, _ := strings.Cut(string(text), " (")
		end := strings.LastIndex(rest, ") ")
		if end < 0 {
			continue
		}
		fields := strings.Fields(rest[end+2:]) // state, parent, group
		if len(fields) < 3 {
			continue
		}
		p := procEntry{name: rest[:end], ended: fields[0] == "Z" || fields[0] == "X"}
		var failed [3]error
		p.id, failed[0] = strconv.Atoi(number)
		p.parent, failed[1] = strconv.Atoi(fields[1])
		p.group, failed[2] = strconv.Atoi(fields[2])
		if errors.Join(failed[:]...) == nil {
			f(p)
		}
	}
	return true
}
