package zkbridge

import "github.com/actorlock/actorlock/zkbridge/internal/zkconn"

// CheckPath returns an error for a path that ZooKeeper would refuse: a path must be absolute and
// without empty names, ".", "..", control characters and a slash at the end. The server's answer
// would name no operation of a transaction.
func CheckPath(path string) error { return zkconn.CheckPath(path) }
