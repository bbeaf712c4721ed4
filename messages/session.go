package messages

import "strconv"

// FormatSession returns the id of a ZooKeeper session as ZooKeeper's logs have it: hexadecimal,
// after 0x. The ids of a server whose number is 128 or greater are negative as an int64.
func FormatSession(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }
