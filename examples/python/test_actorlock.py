"""Tests of actorlock.py, with a lock server at $LOCKD below the path $LOCK: the Go test of this folder starts one."""
import concurrent.futures, os, random, threading, time, unittest

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

    def test_cannot_be_sent(self):
        """What no frame can carry is refused at once, and costs nothing else."""
        with connect(name="caf\udce9") as client, client.lock(LOCK + "/held") as held:
            for path in ("/caf\udce9", None, b"/bytes", 5, "/" + (2 << 20) * "x"):
                with self.assertRaises(ValueError):
                    client.lock(path).acquire(timeout=60)
            for permits in (-1, 2**40, "x", 1.5):
                with self.assertRaises(ValueError):
                    client.semaphore(LOCK + "/permits", permits, take=permits).acquire(timeout=60)
            for timeout in (-1, float("nan"), 1e300):
                with self.assertRaises(ValueError):
                    client.lock(LOCK + "/timeout").acquire(timeout)
            with client.lock(LOCK + "/after", timeout=60):
                held.check()

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


def drawn(r, message, depth=0):
    """Fills a message with any values."""
    for f in message.DESCRIPTOR.fields:
        if r.random() < 0.5:
            continue
        if f.type == f.TYPE_MESSAGE:
            each = (lambda: getattr(message, f.name).add()) if f.label == f.LABEL_REPEATED else (lambda: getattr(message, f.name))
            for _ in range(r.randrange(3) if f.label == f.LABEL_REPEATED else depth < 4):
                part = each()
                part.SetInParent()
                drawn(r, part, depth + 1)
        elif f.label == f.LABEL_REPEATED:
            continue
        elif f.type == f.TYPE_STRING:
            setattr(message, f.name, r.choice(["", "/a", "n", "\0", "x" * 1000]))
        elif f.type == f.TYPE_BYTES:
            setattr(message, f.name, r.randbytes(r.randrange(20)))
        elif f.type == f.TYPE_BOOL:
            setattr(message, f.name, r.random() < 0.5)
        else:
            largest = {f.CPPTYPE_INT32: 2**31 - 1, f.CPPTYPE_UINT32: 2**32 - 1, f.CPPTYPE_UINT64: 2**64 - 1}.get(f.cpp_type, 2**31 - 1 if f.enum_type else 2**63 - 1)
            setattr(message, f.name, r.choice([0, 1, 2, 3, r.randrange(10), largest]))
    return message


def draw(r, frames, renews, counts):
    """A server that keeps to the protocol most of the time as far as the lease goes, and to none with the rest. counts are the numbers
    of messages by the lease."""
    hello = next(frames).hello
    resumed = hello.lease == 7
    if not resumed:
        counts.update(received=0, sent=0)
    newest, acquires, over = [0], [1], threading.Event()

    def listen():
        try:
            for f in frames:
                newest[0] = max(newest[0], f.renew.number)
                if f.messages:
                    counts["received"] = max(counts["received"], f.first + len(f.messages) - 1)
                acquires.extend(m.acquire.acquire.request_id for m in f.messages if m.HasField("acquire"))
        except grpc.RpcError:
            pass  # the stream has ended
        over.set()
    threading.Thread(target=listen, daemon=True).start()
    yield frame(welcome={**WELCOME, "resumed": resumed}, received=counts["received"]) if r.random() < 0.8 else drawn(r, frame())
    for _ in range(r.randrange(300)):
        time.sleep(0.02 * r.random())
        if over.is_set():
            return
        f = drawn(r, frame()) if r.random() < 0.03 else frame()
        if r.random() < 0.9:
            f.ClearField("welcome")
            f.ClearField("ended")
            f.received, f.first = counts["received"], counts["sent"] + 1
            for _ in range(r.randrange(3)):
                m = drawn(r, f.messages.add())
                if m.WhichOneof("what") and hasattr(getattr(m, m.WhichOneof("what")), "request_id"):
                    getattr(m, m.WhichOneof("what")).request_id = r.choice(acquires[-3:])
        f.ClearField("renewed")
        if renews and r.random() < 0.3:
            f.renewed.number, f.renewed.for_nanos = newest[0], 2 * 10**9
        counts["sent"] += len(f.messages)
        yield f


class HostileServers(unittest.TestCase):
    def test_sent_again(self):
        """What a server has not confirmed is sent again in order, in frames of at most 256 messages."""
        streams, again, cut = [], [], threading.Event()

        def answer(frames):
            resumed = next(frames).hello.lease == 7
            streams.append(resumed)
            yield frame(welcome={**WELCOME, "resumed": resumed})
            for f in frames:
                if f.bye:
                    return
                if f.HasField("renew"):
                    yield frame(renewed={"number": f.renew.number, "for_nanos": 30 * 10**9})
                if resumed and f.messages:
                    again.append((f.first, len(f.messages)))
                if not resumed and cut.is_set():
                    return
        with Hostile(answer) as server:
            client = connect(server)
            for _ in range(200):  # each with its cancel
                with self.assertRaises(actorlock.NotAcquired):
                    client.lock("/a").acquire(timeout=0.001)
            cut.set()
            with self.assertRaises(actorlock.NotAcquired):
                client.lock("/a").acquire(timeout=0.001)  # so that the server reads a frame
            deadline = time.monotonic() + 60
            while sum(n for _, n in again) < 402 and time.monotonic() < deadline:
                time.sleep(0.05)
            client.close(timeout=1)
        self.assertEqual(again[0], (1, 256))
        for (first, n), (following, _) in zip(again, again[1:]):
            self.assertEqual(following, first + n)
        self.assertLessEqual(max(n for _, n in again), 256)
        self.assertEqual(sum(n for _, n in again), 402)

    def test_any_frames(self):
        """Whatever a server sends, no grant counts without a lease, and each call ends."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for failed in pool.map(self.any_frames, range(8)):
                self.assertFalse(failed)

    def any_frames(self, seed):
        r, renews, over = random.Random(seed), seed % 4 != 0, threading.Event()
        errors, grants, counts = [], [], {"received": 0, "sent": 0}
        with Hostile(lambda frames: iter(()) if over.is_set() else draw(random.Random(r.random()), frames, renews, counts)) as server:
            try:
                client = connect(server, timeout=60 if renews else 4)
            except actorlock.Unavailable as err:
                return "seed %d: %s" % (seed, err) if renews else ""
            if not renews:
                errors.append("a lease that was never granted counts")

            end = time.monotonic() + 4

            def use(lock):
                while time.monotonic() < end:
                    try:
                        grants.append(lock.acquire(timeout=r.choice([0, 0.2])))
                        grants[-1].release(timeout=0.2)
                    except actorlock.Error:
                        time.sleep(0.01)
                    except Exception as err:
                        return errors.append("a call ends with %r" % err)
            users = [threading.Thread(target=use, args=(lock,)) for lock in (client.lock("/a"), client.read_lock("/a"), client.semaphore("/b", 3))]
            for user in users:
                user.start()
            for user in users:
                user.join(60)
            over.set()  # the last stream and its lease have yet to end
            deadline = time.monotonic() + 60
            while not all(g.lost.is_set() for g in grants) and time.monotonic() < deadline:
                time.sleep(0.05)
            errors += ["%s counts without a lease" % g.token for g in grants if not g.lost.is_set()]
            if not client._thread.is_alive():
                errors.append("the client has failed")
            errors += ["a call does not end" for user in users if user.is_alive()]
            client.close(timeout=1)
        return "seed %d, %d grants: %s" % (seed, len(grants), errors) if errors else ""

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
