package actors

import "github.com/actorlock/actorlock/actors/internal/recipes"

// RequireDirectory has requests end with ErrNoDirectory while the directory at the lock's path does
// not exist. Without it the first request makes the directory. It is for locks in a directory that
// the program makes and deletes together with the object that the lock protects: a request that
// comes after the deletion, or waited meanwhile, does not make the directory again. (A waiter hears
// of the deletion as soon as its node is deleted. A holder's grant ends with ErrNodeDeleted.) A
// request in an existing directory costs nothing more. Make the directory as a persistent node:
// ZooKeeper deletes a container while no contender is in it.
//
// A local queue goes on with its node until it hears of the deletion. The node of a LockDelay, whose
// path is the lock's and "-__held__", is beside the directory: delete it, too.
//
// The directories of a semaphore below its path are made as ever, but not the node of SharedPermits
// in a directory that is missing. Near the end of the sequence numbers, at 2^31, the lock does not
// delete the directory to begin anew: requests then end with ErrSequenceExhausted. A multi-lock
// fails if a member with this option does, and makes no node then. The campaign of an Election ends
// with ErrNoDirectory. Custom has no such option.
func RequireDirectory() DirectoryOption { return directoryOption{lockOption(recipes.RequireDirectory)} }

// DirectoryOption is an option of a lock and of an election: RequireDirectory.
type DirectoryOption interface {
	LockOption
	ElectionOption
}

type directoryOption struct{ lockOption }

func (d directoryOption) setElection(e *Election) error {
	e.requires = []LockOption{d}
	return nil
}
