// Package writer creates and deletes the nodes of contenders. It collects the requests that come
// while others are under way, and sends them as one transaction. It answers a request when the
// outcome is known: an answer that was lost makes it look for the node. If the outcome is unknown
// for three session timeouts, it answers that.
//
// A [Writer] belongs to one epoch and runs in the bridge's actor, which the [Epoch] stands for. No
// method blocks, and none may be called from another goroutine.
//
// The way of a create whose directory is in use: Create and add put it into the queue. Flush, which the
// bridge's actor calls when its mailbox is empty, has sendBatches send what waits: buildBatch takes groups
// from the queue (addToBatch, batch.add, addCreate) and makes a transaction of them (buildOps), and send
// writes that to the connection, with reads of directories behind it. When all of them are answered,
// onBatchDone calls onSuccess, which sends each lock's actor a Created: with the node's name, its czxid, and
// what is known of the directory (setDirectory).
//
// The way of the first create in a directory: the bridge keeps it until the writer has few others
// like it. Then Create and add have it stand in the line of the directory (mayBeNew, enter). Flush
// has buildNewBatch take the lines (addLine) into a batch of their own. Its transaction makes the
// directory first (addContainers) if the writer takes it for missing. The rest is the same, but that
// onInUse has those that came meanwhile go from the line into the queue. If the writer was wrong, ZooKeeper has
// executed nothing, and the line is sent again (missing.go).
//
// The files, in reading order:
//
//   - epoch.go: what the writer needs of the bridge.
//   - request.go: a create, a release, an atomic create, and how ZooKeeper is asked for them.
//   - config.go: what the writer needs to know, and how it begins.
//   - batch.go: one transaction of such requests, and the reads of directories behind it.
//   - writer.go: a create on its way to ZooKeeper and back.
//   - queue.go: the batches in flight, and what goes back in front of the queue.
//   - shares.go: what a batch takes from a queue that is too long for it.
//   - watched.go: directories that need no read behind a create, because they are watched.
//   - result.go: what the answer to a batch means for its requests if ZooKeeper did not execute it.
//   - directory.go: creates in directories that may be missing. They wait in the line of the
//     directory; a create that need not wait is in the queue.
//   - missing.go: what a batch means that failed because of its directories.
//   - unknown.go: creates whose outcome is unknown, and how the writer finds their nodes.
//   - guarded.go: a create on condition that another node exists.
//   - rollback.go: requests that fail although their node exists, and what becomes of the node.
//   - orphan.go: nodes without a request, which the writer deletes when ZooKeeper lets it.
package writer
