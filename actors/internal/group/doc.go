// Package group has the actor of a member of a group that shares partitions, and what follows the
// state of the group. Package partition decides.
//
//   - follower.go: the state of the group, read and watched.
//   - member.go: the actor, which feeds the machine of package partition, and performs its actions.
//   - request.go: a request to the lock of a partition, or to the lock that is the list of members.
//   - publish.go: how a member publishes what it leads.
//   - pace.go: how often, by how many members there are.
//   - ownnode.go: what it does if another program overwrites that.
//
// The list of members is a read-write lock that nobody writes: each member is a reader.
package group
