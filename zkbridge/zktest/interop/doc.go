// Package interop drives the ZooKeeper clients of other languages from Go tests: Apache Curator in
// a Java process and kazoo in a Python process, both from Debian's packages. A test makes them
// contend with Go code for one lock:
//
//	func TestMain(m *testing.M) { zktest.Main(m) }
//
//	func TestWithCurator(t *testing.T) {
//		zktest.Each(t, func(t *testing.T, s *zktest.Server) {
//			path, resource := s.Path(t), interop.NewResource(t)
//			theirs := interop.Curator(t, s.Addr()).Mutex(path).Contend(resource, "java", 50)
//			ours := resource.Contend("go", interop.Exclusive, 50, func() (release func() error, err error) { ... })
//			if err := errors.Join(ours, <-theirs, resource.Verify(0)); err != nil {
//				t.Fatal(err)
//			}
//		})
//	}
//
// Without Java, Curator or kazoo the test is skipped, or fails ([zktest.Lack]). The processes end
// with the test. Their clients have time limits for requests, and this package has none: each call
// blocks until the other process has answered or ended.
package interop
