// Package costs tests what locks cost: requests to ZooKeeper, round trips, transactions, memory,
// and how all of that grows with the number of requests. The benchmarks are here, too.
package costs
