package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/examples/internal/console"
)

// group is a group that shares partitions, as the page gets it.
type group struct {
	Path    string        `json:"path"`
	Error   string        `json:"error,omitempty"`
	Members []groupMember `json:"members"`
	Leaders []int         `json:"leaders"` // for each partition the index of its leader in Members, or -1
}

type groupMember struct {
	ID    string `json:"id"`
	Data  string `json:"data"`
	Waits int    `json:"waits"` // how many partitions it waits for
}

// shownGroup is a group on the board.
type shownGroup struct {
	group    group
	observed bool
	stop     context.CancelFunc // of the observer
}

// withoutGroups starts an observer for each new group, ends the observers of those that are not there any
// more, and returns the found locks that belong to no group. The lock members of a group, which its members
// hold, shows the group.
func (b *board) withoutGroups(ctx context.Context, running *sync.WaitGroup, found []string, failed error) []string {
	there := map[string]bool{}
	for _, path := range found {
		if at, is := strings.CutSuffix(path, "/members"); is && at != "" && b.isGroup(ctx, running, at) {
			there[at] = true
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for path, g := range b.groups {
		if !there[path] && failed == nil {
			g.stop()
			delete(b.groups, path)
			b.change(path)
		}
	}
	return slices.DeleteFunc(slices.Clone(found), func(path string) bool {
		if at, is := strings.CutSuffix(path, "/members"); is && b.groups[at].stop != nil {
			return true
		}
		at := strings.LastIndex(path, "/partitions/")
		return at > 0 && b.groups[path[:at]].stop != nil
	})
}

// isGroup reports whether path is that of a group, which is observed from then on.
func (b *board) isGroup(ctx context.Context, running *sync.WaitGroup, path string) bool {
	b.mu.Lock()
	known := b.groups[path].stop != nil
	b.mu.Unlock()
	if known {
		return true
	}
	count, err := b.locks.SharedCount(path+"/count", 0).Get(ctx)
	if err != nil || count.Version < 0 || count.Value < 1 {
		return false
	}
	ctx, stop := context.WithCancel(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.groups[path] = shownGroup{stop: stop}
	running.Go(func() {
		for g := range b.locks.Partitions(path, count.Value).Observe(ctx) {
			b.putGroup(g)
		}
	})
	return true
}

func (b *board) putGroup(g actors.PartitionGroup) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, known := b.groups[g.Path]; known {
		b.groups[g.Path] = shownGroup{newGroup(g), true, s.stop}
		b.change(g.Path)
	}
}

func newGroup(g actors.PartitionGroup) group {
	shown := group{Path: g.Path, Members: make([]groupMember, len(g.Members)), Leaders: g.Leaders}
	for i, m := range g.Members {
		data := console.Printable(string(m.Data))
		if len(data) > maxData {
			data = fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(data[:maxData], ""), len(m.Data))
		}
		shown.Members[i] = groupMember{m.ID, data, len(m.Waits)}
	}
	if g.Err != nil {
		shown.Error = g.Err.Error()
	}
	return shown
}
