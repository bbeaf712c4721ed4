// Package locktest has what the tests of the locks share. A test mostly looks like this:
//
//	func TestMain(m *testing.M) { locktest.Main(m, nil) }
//
//	func TestWaiterOutlivesHolder(t *testing.T) {
//		locktest.Each(t, func(b *locktest.Fixture) { // or Bubble(t, func(v *locktest.Virtual) {
//			holder, mu := b.Locks(), b.Mutex()
//			g := locktest.Lock(b, holder.Mutex(b.LockPath))
//			f := mu.Acquire(locktest.Within(b))
//			b.WaitNodes(2)
//			locktest.Pending(b, f)
//			b.ExpireSession(holder)
//			locktest.Closes(b, g.Done(), "the lost grant")
//			locktest.Unlock(b, locktest.Result(b, f))
//		})
//	}
//
// [Each] runs a test on both servers of package zktest, and waits until no node and no watch is
// left. [Bubble] runs it in virtual time. A function whose name begins with Wait waits until a
// condition holds, and one whose name begins with Expect checks it. The page actors/README.md lists
// all fixtures.
package locktest
