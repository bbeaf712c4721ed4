"""Tests of actorlock.py, with a lock server at $LOCKD below the path $LOCK: the Go test of this folder starts one."""
import concurrent.futures, os, threading, time, unittest

import grpc

import actorlock

LOCKD, LOCK = os.environ["LOCKD"], os.environ["LOCK"]


def connect(servers=LOCKD, **options):
    return actorlock.Client(servers, insecure=True, **options)


class Locks(unittest.TestCase):
    def test_mutex(self):
        path = LOCK + "/mutex"
        with connect() as one, connect() as two:
            with one.lock(path) as first:
                self.assertFalse(first.lost.is_set())
                first.check()
                self.assertTrue(first.path == path and first.node)
                with self.assertRaises(actorlock.NotAcquired):
                    two.lock(path).acquire(timeout=0)
                start = time.monotonic()
                with self.assertRaises(actorlock.NotAcquired):
                    with two.lock(path, timeout=0.5):
                        self.fail("two hold")
                self.assertGreaterEqual(time.monotonic() - start, 0.5)
            with two.lock(path, timeout=60) as second:
                self.assertLess(first.token, second.token)

    def test_waits(self):
        path = LOCK + "/waits"
        with connect() as one, connect() as two, concurrent.futures.ThreadPoolExecutor() as pool:
            held = one.lock(path).acquire()
            waits = pool.submit(two.lock(path).acquire, 60)
            time.sleep(0.5)
            self.assertFalse(waits.done())
            held.release()
            granted = waits.result()
            granted.release()
            with self.assertRaises(actorlock.Error):
                granted.release()

    def test_read_write(self):
        path = LOCK + "/rw"
        with connect() as one, connect() as two:
            with one.read_lock(path), two.read_lock(path, timeout=60):
                with self.assertRaises(actorlock.NotAcquired):
                    two.write_lock(path).acquire(timeout=0)
            with one.write_lock(path, timeout=60):
                with self.assertRaises(actorlock.NotAcquired):
                    two.read_lock(path).acquire(timeout=0)

    def test_semaphore(self):
        path = LOCK + "/semaphore"
        with connect() as one, connect() as two:
            with one.semaphore(path, 2), two.semaphore(path, 2, timeout=60):
                with self.assertRaises(actorlock.NotAcquired):
                    two.semaphore(path, 2).acquire(timeout=0)
            with one.semaphore(path, 2, timeout=60, take=2):
                pass

    def test_refused(self):
        with connect() as client:
            for path in ("no slash", "/a/../b", "/"):
                with self.assertRaises(actorlock.Refused) as refused:
                    client.lock(path).acquire(timeout=60)
                self.assertEqual(refused.exception.reason, "INVALID")

    def test_close(self):
        path = LOCK + "/close"
        one = connect()
        held = one.lock(path).acquire()
        self.assertTrue(one.close())
        self.assertTrue(held.lost.is_set())
        with self.assertRaises(actorlock.Closed):
            one.lock(path).acquire()
        with connect() as two, two.lock(path, timeout=60):
            pass

    def test_servers(self):
        for servers in ("127.0.0.1:1," + LOCKD, [LOCKD, "127.0.0.1:1"]):
            with connect(servers) as client, client.lock(LOCK + "/servers", timeout=60):
                pass
        with self.assertRaises(actorlock.Unavailable) as none:
            connect("127.0.0.1:1,127.0.0.1:2", timeout=2)
        self.assertIn("127.0.0.1:1", str(none.exception))
        with self.assertRaises(ValueError):
            actorlock.Client(LOCKD)
        with self.assertRaises(ValueError):
            actorlock.Client("a,,b", insecure=True)


def frame(**what):
    return actorlock._ServerFrame(**what)


class Hostile:
    """A lock server whose answers are a test's."""

    def __init__(self, answer):
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=4))
        handler = grpc.stream_stream_rpc_method_handler(lambda frames, _: answer(frames), actorlock._ClientFrame.FromString,
                                                        lambda f: f if isinstance(f, bytes) else f.SerializeToString())
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("actorlock.LockServer", {"Connect": handler})])
        self.port = self.server.add_insecure_port("127.0.0.1:0")

    def __enter__(self):
        self.server.start()
        return "127.0.0.1:%d" % self.port

    def __exit__(self, *_):
        self.server.stop(0)


WELCOME = {"lease": 7, "incarnation": 8, "state": {"connected": True}}


def serve(frames, promise=2 * 10**9, granted=lambda number: [], once=(), silent_from=float("inf")):
    """A server that welcomes and renews, until it is silent; to an Acquire it answers what granted returns."""
    hello = next(frames)
    assert hello.hello.version == 1
    resumed = hello.hello.lease == 7
    yield frame(welcome={**WELCOME, "resumed": resumed}, received=1 if resumed else 0)  # of one Acquire
    yield from once
    received = 0
    for f in frames:
        if f.bye:
            return
        if f.HasField("renew") and f.renew.number < silent_from:
            yield frame(renewed={"number": f.renew.number, "for_nanos": promise})
        for m in f.messages:
            received += 1
            if m.HasField("acquire"):
                for answer in granted(m.acquire.acquire.request_id):
                    yield answer


def grant(number, first=1, confirmed=1):
    return frame(received=confirmed, first=first, messages=[{"granted": {"request_id": number, "path": "/a", "node": "n", "czxid": 5}}])


class HostileServers(unittest.TestCase):
    def test_no_lease(self):
        """Nothing is believed of a server that begins wrongly, and the client ends in time."""
        def answers(*of):
            def answer(frames):
                next(frames)
                yield from of
                for _ in frames:
                    pass
            return answer
        renewed = frame(renewed={"number": 1, "for_nanos": 10**10})
        for what, answer in {
            "no Welcome": answers(renewed),
            "two Welcomes": answers(frame(welcome=WELCOME), frame(welcome=WELCOME), renewed),
            "no lease": answers(frame(welcome={"incarnation": 1}), renewed),
            "what was not sent is confirmed": answers(frame(welcome=WELCOME, received=3), renewed),
            "a gap": answers(frame(welcome=WELCOME, first=3, messages=[{"released": {"request_id": 1}}]), renewed),
            "message 0": answers(frame(welcome=WELCOME, first=0, messages=[{"released": {"request_id": 1}}]), renewed),
            "no promise": answers(frame(welcome=WELCOME), frame(renewed={"number": 1})),
            "a promise below 0": answers(frame(welcome=WELCOME), frame(renewed={"number": 1, "for_nanos": -1})),
            "a promise without end": answers(frame(welcome=WELCOME), frame(renewed={"number": 1, "for_nanos": 2**62})),
            "a promise for what was not asked": answers(frame(welcome=WELCOME), frame(renewed={"number": 99, "for_nanos": 10**10})),
            "no message": answers(b"\xff\xff\xff"),
            "a frame that is too large": answers(b"\x00" * (3 << 20)),
            "the end": answers(frame(ended={"reason": 4, "detail": "no"})),
            "nothing": answers(),
        }.items():
            with self.subTest(what), Hostile(answer) as server:
                start = time.monotonic()
                with self.assertRaises(actorlock.Unavailable):
                    connect(server, timeout=0.7).close()
                self.assertLess(time.monotonic() - start, 30)

    def test_grants(self):
        """Only the first Granted of a request counts, and no Granted of another one."""
        def answers(number):
            yield grant(number + 100)
            yield frame(first=2, messages=[{"lost": {"request_id": number + 100}}, {}])
            yield grant(number, first=4)
            yield grant(number, first=4)  # the same message again
            yield grant(number, first=5)
        with Hostile(lambda frames: serve(frames, granted=answers)) as server:
            client = connect(server)
            held = client.lock("/a").acquire(timeout=60)
            self.assertEqual(held.token, "%016x.%016x.%08x" % (0, 5, 0))
            time.sleep(0.5)
            self.assertFalse(held.lost.is_set())
            client.close(timeout=1)

    def test_silence(self):
        """A lease that is not renewed is over by the client's clock, and the grant with it."""
        with Hostile(lambda frames: serve(frames, granted=lambda n: [grant(n)], silent_from=3)) as server:
            client = connect(server)
            held = client.lock("/a").acquire(timeout=60)
            self.assertTrue(held.lost.wait(30))
            with self.assertRaises(actorlock.Lost):
                held.check()
            with self.assertRaises(actorlock.Lost):
                held.release()
            client.close(timeout=1)

    def test_violation_keeps_the_lease(self):
        """A stream that breaks the protocol ends; the lease is resumed, and nothing of the frame counts."""
        streams = []
        def answer(frames):
            streams.append(1)
            if len(streams) > 1:
                yield from serve(frames, promise=5 * 10**9)
                return
            yield from serve(frames, promise=5 * 10**9, granted=lambda n: [grant(n), frame(received=99, first=2, messages=[{"lost": {"request_id": n}}])])
        with Hostile(answer) as server:
            client = connect(server)
            held = client.lock("/a").acquire(timeout=60)
            deadline = time.monotonic() + 60
            while len(streams) < 2 and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(1)
            self.assertGreaterEqual(len(streams), 2)
            self.assertFalse(held.lost.is_set())
            client.close(timeout=1)


if __name__ == "__main__":
    unittest.main()
