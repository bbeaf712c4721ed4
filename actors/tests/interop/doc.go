// Package interop tests locks that other libraries use, too: Curator, kazoo and go-zookeeper as
// programs of their own, and nodes as those libraries make them, written by a plain client.
package interop
