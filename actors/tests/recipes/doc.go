// Package recipes tests what each recipe promises its owners: the mutex, the read-write lock, the
// semaphore, the multi-lock, custom locks, locks with a local queue or a lock-delay, and the
// options and methods of requests and grants, such as Try, HoldAtMost, Cancel and Revoke.
//
// What happens to the same locks when sessions, networks and servers fail is in package failures,
// and what wrong calls return in package api.
package recipes
