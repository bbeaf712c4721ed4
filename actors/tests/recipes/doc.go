// Package recipes tests what each recipe promises its owners: the mutex, the read-write lock, the
// semaphore, the multi-lock, custom locks, locks with a local queue or a lock-delay, and the
// options and methods of requests and grants, such as Try, HoldAtMost, Cancel and Revoke.
//
// Package failures has the tests of sessions, networks and servers that fail, and package api those
// of wrong calls.
package recipes
