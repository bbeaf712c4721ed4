package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// running returns the processes of a group that /proc shows and that have not ended. It reports whether
// /proc can be read.
func running(group int) (all []groupMember, known bool) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		return nil, false
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
		id, err := strconv.Atoi(number)
		fields := strings.Fields(rest[end+2:]) // state, parent, group
		if err == nil && len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X" {
			all = append(all, groupMember{id, rest[:end]})
		}
	}
	return all, true
}
