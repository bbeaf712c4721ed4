package actors_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// recipe is a lock of some recipe, by a handle that excludes all others.
type recipe struct {
	lock locker
	kind uint32 // of a message that asks for what the handle does
	once bool   // an owner cannot enter again what it holds
}

// recipes are locks of all recipes, at paths of their own, which begin with the testLock's.
func (b *testLock) recipes(locks *actors.Locks) map[string]recipe {
	at := func(end string) string { return b.path + end }
	local := actors.LocalQueue(actors.LocalQueueConfig{Linger: time.Millisecond})
	return map[string]recipe{
		"mutex":           {lock: locks.Mutex(b.path)},
		"lock-delay":      {lock: locks.Mutex(at("-d"), actors.LockDelay(time.Second))},
		"local queue":     {lock: locks.Mutex(at("-l"), local)},
		"write":           {lock: locks.RWMutex(at("-rw")).Write(), kind: uint32(messages.Kind_WRITE)},
		"local write":     {lock: locks.RWMutex(at("-lrw"), local).Write(), kind: uint32(messages.Kind_WRITE)},
		"semaphore":       {lock: locks.Semaphore(at("-s"), 1), once: true},
		"semaphore mutex": {lock: locks.SemaphoreMutex(at("-sm")), once: true},
		"multi-lock":      {lock: locks.MultiLock(locks.Mutex(at("-a")), locks.SemaphoreMutex(at("-b"))), once: true},
		"simple mutex":    {lock: locks.SimpleMutex(at("-simple"))},
		"simple write":    {lock: locks.SimpleRWMutex(at("-simple-rw")).Write(), kind: uint32(messages.Kind_WRITE)},
		"custom":          {lock: locks.Custom(at("-c"), "custom lock", mineRule, "mine").Kind("mine"), once: true},
	}
}

// recipeEnds end the paths of the directories of recipes, from which all nodes must go.
var recipeEnds = []string{"", "-d", "-l", "-rw", "-lrw", "-s/leases", "-sm/leases", "-a", "-b/leases", "-simple", "-simple-rw", "-c"}

// eachRecipe runs f in a bubble for every recipe.
func eachRecipe(t *testing.T, f func(v *virtual, locks *actors.Locks, r recipe)) {
	t.Helper()
	for name := range new(testLock).recipes(&actors.Locks{}) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(v *virtual) {
				locks := v.locks()
				f(v, locks, v.recipes(locks)[name])
			})
		})
	}
}

func (r recipe) pid(t testing.TB) *actor.PID {
	t.Helper()
	return pid(t, r.lock.(interface{ PID() (*actor.PID, error) }))
}
