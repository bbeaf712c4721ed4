package embedded_test

import (
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// BenchmarkCreateDelete measures pairs of requests through go-zookeeper's
// client, which is the slower half of it.
func BenchmarkCreateDelete(b *testing.B) {
	for _, server := range []string{"embedded", "zookeeper"} {
		for _, clients := range []int{1, 64, 256} {
			b.Run(fmt.Sprint(server, "/goroutines=", clients), func(b *testing.B) {
				c := client(b, embedded.Run(b))
				if server == "zookeeper" {
					c = zktest.Real(b).Client(b)
				}
				b.ReportAllocs()
				run(b, clients, func(i int) error {
					path, err := c.Create("/n-", nil, zk.FlagEphemeral|zk.FlagSequence, open)
					if err == nil {
						err = c.Delete(path, -1)
					}
					return err
				})
			})
		}
	}
}

func run(b *testing.B, workers int, f func(int) error) {
	var wg sync.WaitGroup
	for w := range workers { // each takes its share of b.N
		wg.Go(func() {
			for i := w; i < b.N; i += workers {
				if err := f(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkPipelined keeps 100 requests of one connection in flight.
func BenchmarkPipelined(b *testing.B) {
	for _, server := range []string{"embedded", "zookeeper"} {
		b.Run(server, func(b *testing.B) {
			addr := ""
			if server == "zookeeper" {
				addr = zktest.Real(b).Addr()
			} else {
				addr = embedded.Run(b).Addr()
			}
			c := openSession(b, addr, 10*time.Second)
			c.call(embedded.OpCreate, "/bench", []byte(nil), open, 1)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				c.request(embedded.OpSetData, "/bench", []byte("x"), -1)
				if i >= 100 {
					c.answer(c.xid - 100)
				}
			}
			for i := max(0, b.N-100); i < b.N; i++ {
				c.answer(c.xid - int32(b.N-1-i))
			}
		})
	}
}

// BenchmarkMemory measures what an idle session on a TCP connection takes, stacks of its goroutines
// included, and what a node takes: /nodes/n-0000000000 with 16 bytes of data, 10,000 in one
// directory.
func BenchmarkMemory(b *testing.B) {
	for name, fill := range map[string]func(*embedded.Server) (n int){
		"session": func(s *embedded.Server) int {
			for range 1000 {
				nc, err := net.Dial("tcp", s.Addr())
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { nc.Close() })
				c := newRaw(b, nc)
				if !c.connect(40*time.Second, 0, c.password, 0) {
					b.Fatal("no session")
				}
				c.call(embedded.OpPing)
			}
			return 1000
		},
		"node": func(s *embedded.Server) int {
			c := openSession(b, s.Addr(), 40*time.Second)
			c.call(embedded.OpCreate, "/nodes", []byte(nil), open, 0)
			for range 10_000 {
				c.call(embedded.OpCreate, "/nodes/n-", make([]byte, 16), open, 2)
			}
			return 10_000
		},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				s := embedded.Run(b)
				before := memoryInUse()
				n := fill(s)
				b.ReportMetric(float64(memoryInUse()-before)/float64(n), "B/"+name)
			}
		})
	}
}

func memoryInUse() uint64 {
	heap := heapInUse()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return heap + m.StackInuse
}
