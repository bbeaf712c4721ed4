#!/usr/bin/python3
"""Holds a lock of a lock server until its input ends:  client.py SERVER LOCK [CA CERT KEY]

It prints "holds TOKEN", and "released" at the end. It exits with 70 when the lock is lost, in time: its lease is over, by its own
clock, before the server lets others hold. It resumes the lease when a stream breaks. The rules are those of messages/remote.proto and
.github/REMOTE.md.
"""
import os, queue, sys, threading, time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

pool = descriptor_pool.DescriptorPool()
descriptors = os.path.join(os.path.dirname(os.path.abspath(__file__)), "messages.binpb")
for file in descriptor_pb2.FileDescriptorSet.FromString(open(descriptors, "rb").read()).file:
    pool.Add(file)
ClientFrame, ServerFrame = [
    message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("actorlock." + name))  # protobuf 4.22: GetMessageClass
    for name in ("ClientFrame", "ServerFrame")]
INPUT_ENDED, STREAM_ENDED = object(), "the server has ended the stream"
OPTIONS = [("grpc.keepalive_time_ms", 10000), ("grpc.keepalive_timeout_ms", 5000), ("grpc.initial_reconnect_backoff_ms", 200),
           ("grpc.max_reconnect_backoff_ms", 1000)]
Lost = type("Lost", (Exception,), {})


def clock():
    return time.clock_gettime(time.CLOCK_BOOTTIME)  # goes on while the machine is suspended


class Client:
    def __init__(self, channel):
        self.out, self.events = queue.Queue(), queue.Queue()  # no stream takes what is in the first out
        self.sent, self.received, self.unconfirmed = 0, 0, []  # numbers of messages; those that the server may not have
        self.renewals, self.number, self.got = {}, 0, 0  # number -> when it was sent; the newest; the newest with an answer
        self.until = None  # the end of the belief; None before the first answer
        self.lease = {}  # that a Hello resumes
        self.ends = False  # the input has ended
        self.connect = channel.stream_stream("/actorlock.LockServer/Connect", ClientFrame.SerializeToString, ServerFrame.FromString)
        self.renew()
        self.open()

    def open(self):
        self.out.put(None)  # ends the thread of the stream before
        self.out, self.opening = queue.Queue(), queue.Queue()  # nothing is sent ahead of the Welcome
        self.opening.put(ClientFrame(hello={"version": 1, "client": "client.py", **self.lease}))
        threading.Thread(target=self.read, args=(self.connect(iter(self.opening.get, None)),), daemon=True).start()

    def read(self, answers):
        try:
            for frame in answers:
                self.events.put(frame)
            end = STREAM_ENDED
        except grpc.RpcError as err:
            end = err.details()
            time.sleep(0.2)  # until the next attempt
        self.events.put(end)

    def welcomed(self, welcome):
        if self.lease and not welcome.resumed:
            raise Lost("the server does not know the lease any more")
        self.lease = {"lease": welcome.lease, "incarnation": welcome.incarnation}
        self.out = self.opening
        self.renew()
        if self.unconfirmed:
            self.out.put(ClientFrame(received=self.received, first=self.sent - len(self.unconfirmed) + 1, messages=self.unconfirmed))

    def send(self, **what):
        self.sent += 1
        self.unconfirmed.append(what)
        self.out.put(ClientFrame(received=self.received, first=self.sent, messages=[what]))

    def renew(self):
        self.number += 1
        now = self.renewals[self.number] = clock()  # before it is sent
        self.out.put(ClientFrame(received=self.received, renew={"number": self.number, "got": self.got}))
        self.next_renewal = now + (max((self.until - now) / 3, 0.1) if self.until else 0.5)

    def renewed(self, answer):
        if answer.number > self.got:
            self.got, now = answer.number, clock()
            self.until = max(self.until or 0, self.renewals[self.got] + answer.for_nanos / 1e9 * (1 - 1 / 200))
            self.renewals = {n: at for n, at in self.renewals.items() if n > self.got}
            self.next_renewal = now + max((self.until - now) / 3, 0.1)

    def next(self):
        """Returns the messages of the next frame, or INPUT_ENDED. It renews the lease until then."""
        while True:
            try:
                event = self.events.get(timeout=max(min(self.next_renewal, self.until or float("inf")) - clock(), 0))
            except queue.Empty: event = None
            if self.until and clock() >= self.until:  # before any message is handled
                raise Lost("the lease is over")
            if clock() >= self.next_renewal:
                self.renew()
            if isinstance(event, str):
                if not self.until:
                    raise Lost(event)
                self.open()  # the lease goes on until its end
            if isinstance(event, ServerFrame):
                if event.HasField("ended"):
                    raise Lost(event.ended.detail)
                del self.unconfirmed[:max(event.received + len(self.unconfirmed) - self.sent, 0)]
                if event.HasField("welcome"):
                    self.welcomed(event.welcome)
                if event.HasField("renewed"):
                    self.renewed(event.renewed)
                seen, self.received = self.received + 1 - event.first, max(self.received, event.first + len(event.messages) - 1)
            self.ends = self.ends or event is INPUT_ENDED
            if self.ends and self.out is self.opening:  # otherwise no stream takes the Bye yet
                return INPUT_ENDED
            if isinstance(event, ServerFrame):
                return list(event.messages)[max(seen, 0):]

    def leave(self):
        self.out.put(ClientFrame(bye=True, received=self.received))
        self.out.put(None)
        try:
            while not isinstance(event := self.events.get(timeout=5), str): pass
        except queue.Empty: event = "no answer within 5 s"
        if event != STREAM_ENDED:  # which the server does when all is given back
            raise Lost("the server has not confirmed the end of the lease: " + event)


def main(server, path, *tls):
    credentials = tls and grpc.ssl_channel_credentials(*[open(tls[i], "rb").read() for i in (0, 2, 1)])
    client = Client(grpc.secure_channel(server, credentials, OPTIONS) if tls else grpc.insecure_channel(server, OPTIONS))
    client.send(acquire={"path": path, "lock": {}, "acquire": {"request_id": 1}})  # the recipe is MUTEX
    threading.Thread(target=lambda: (sys.stdin.read(), client.events.put(INPUT_ENDED)), daemon=True).start()
    granted, holds = None, False
    while True:
        if (event := client.next()) is INPUT_ENDED: break
        for m in event:
            if m.HasField("refused") or m.HasField("lost"):
                raise Lost(m)
            granted = m.granted if m.HasField("granted") else granted
        if granted and client.until and not holds:  # a grant counts while the client believes
            holds = True
            print("holds %016x.%016x.%08x" % (granted.generation, granted.czxid, granted.step), flush=True)
    client.leave()
    print("released", flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (Lost, grpc.RpcError) as why:
        print("lost:", why, flush=True)
        os._exit(70)  # at once: gRPC's threads may wait for the server
