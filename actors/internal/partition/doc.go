// Package partition decides which member of a group leads which partition, without I/O or time.
//
//   - place.go: which members shall lead a partition, a function of the members alone.
//   - record.go: what a member publishes about itself, as the data of its node.
//   - view.go: the state of the group, made of what all members publish.
//   - machine.go: what one member does: for which partitions it campaigns, and when it resigns.
//
// Nothing here excludes a second leader: the lock of each partition does.
package partition
