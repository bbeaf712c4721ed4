"""Locks of a lock server, for Python:

    import actorlock

    with actorlock.Client("lock1:7400,lock2:7400", tls=actorlock.TLS("ca.pem", "me.pem", "me.key")) as client:
        with client.lock("/locks/backup", timeout=60) as grant:
            for part in parts:
                if grant.lost.is_set():
                    break
                copy(part, token=grant.token)

A client holds by a lease, which a thread renews. A grant is lost when its lease is over by the client's own clock, before the server
lets others hold: grant.lost is set then. A program that does not look at it is stopped by its token only: send grant.token with each
write. The client resumes its lease when a stream breaks, and queues anew at the next server when the lease is over. The rules are
those of messages/remote.proto and .github/REMOTE.md. This file needs grpcio and protobuf, and nothing else of the repository.
"""
import base64, collections, logging, os, queue, random, sys, threading, time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["Client", "TLS", "Lock", "Grant", "Error", "Unavailable", "NotAcquired", "Refused", "Lost", "Closed"]

# The messages of messages/remote.proto, made by go generate.
_MESSAGES = """
Cr4BChtnb29nbGUvcHJvdG9idWYvZW1wdHkucHJvdG8SD2dvb2dsZS5wcm90b2J1ZiIHCgVFbXB0eUJ9ChNjb20uZ29vZ2xlLnByb3RvYnVmQgpFbXB0eVByb3RvUAFaLmdvb2ds
ZS5nb2xhbmcub3JnL3Byb3RvYnVmL3R5cGVzL2tub3duL2VtcHR5cGL4AQGiAgNHUEKqAh5Hb29nbGUuUHJvdG9idWYuV2VsbEtub3duVHlwZXNiBnByb3RvMwqIEgoUYWN0b3Js
b2NrL2xvY2sucHJvdG8SCWFjdG9ybG9jaxobZ29vZ2xlL3Byb3RvYnVmL2VtcHR5LnByb3RvIsoCCgdBY3F1aXJlEh0KCnJlcXVlc3RfaWQYASABKARSCXJlcXVlc3RJZBIUCgVv
d25lchgCIAEoCVIFb3duZXISEgoEZGF0YRgDIAEoDFIEZGF0YRIQCgN0cnkYBCABKAhSA3RyeRIdCgp3YWl0X25hbm9zGAUgASgDUgl3YWl0TmFub3MSEgoEa2luZBgGIAEoDVIE
a2luZBIYCgdwZXJtaXRzGAcgASgNUgdwZXJtaXRzEikKEG5vdGlmeV9jb250ZW5kZWQYCCABKAhSD25vdGlmeUNvbnRlbmRlZBIcCglyZXZvY2FibGUYCSABKAhSCXJldm9jYWJs
ZRIdCgpob2xkX25hbm9zGAogASgDUglob2xkTmFub3MSLwoUZmFpbF9vbl9zZXNzaW9uX2xvc3MYCyABKAhSEWZhaWxPblNlc3Npb25Mb3NzIlwKBkNhbmNlbBIdCgpyZXF1ZXN0
X2lkGAEgASgEUglyZXF1ZXN0SWQSFAoFb3duZXIYAiABKAlSBW93bmVyEh0KCmF3YWl0X25vZGUYAyABKAhSCWF3YWl0Tm9kZSI+CgdSZWxlYXNlEh0KCnJlcXVlc3RfaWQYASAB
KARSCXJlcXVlc3RJZBIUCgVvd25lchgCIAEoCVIFb3duZXIi+QEKB0dyYW50ZWQSHQoKcmVxdWVzdF9pZBgBIAEoBFIJcmVxdWVzdElkEhIKBHBhdGgYAiABKAlSBHBhdGgSEgoE
bm9kZRgDIAEoCVIEbm9kZRIUCgVjenhpZBgEIAEoA1IFY3p4aWQSEgoEc3RlcBgFIAEoDVIEc3RlcBIdCgpzZXNzaW9uX2lkGAYgASgDUglzZXNzaW9uSWQSFAoFZXBvY2gYByAB
KARSBWVwb2NoEigKBXBhcnRzGAggAygLMhIuYWN0b3Jsb2NrLkdyYW50ZWRSBXBhcnRzEh4KCmdlbmVyYXRpb24YCSABKARSCmdlbmVyYXRpb24ijwEKB1JlZnVzZWQSHQoKcmVx
dWVzdF9pZBgBIAEoBFIJcmVxdWVzdElkEikKBnJlYXNvbhgCIAEoDjIRLmFjdG9ybG9jay5SZWFzb25SBnJlYXNvbhIWCgZkZXRhaWwYAyABKAlSBmRldGFpbBIiCgxkaXNjb25u
ZWN0ZWQYBCABKAhSDGRpc2Nvbm5lY3RlZCJICghSZWxlYXNlZBIdCgpyZXF1ZXN0X2lkGAEgASgEUglyZXF1ZXN0SWQSHQoKc3RpbGxfaGVsZBgCIAEoDVIJc3RpbGxIZWxkImgK
BExvc3QSHQoKcmVxdWVzdF9pZBgBIAEoBFIJcmVxdWVzdElkEikKBnJlYXNvbhgCIAEoDjIRLmFjdG9ybG9jay5SZWFzb25SBnJlYXNvbhIWCgZkZXRhaWwYAyABKAlSBmRldGFp
bCIqCglTdXNwZW5kZWQSHQoKcmVxdWVzdF9pZBgBIAEoBFIJcmVxdWVzdElkIjAKD1Jldm9rZVJlcXVlc3RlZBIdCgpyZXF1ZXN0X2lkGAEgASgEUglyZXF1ZXN0SWQiKgoJQ29u
dGVuZGVkEh0KCnJlcXVlc3RfaWQYASABKARSCXJlcXVlc3RJZCrtAgoGUmVhc29uEhYKElJFQVNPTl9VTlNQRUNJRklFRBAAEhAKDE5PVF9BQ1FVSVJFRBABEg0KCVRJTUVEX09V
VBACEg0KCUNBTkNFTExFRBADEhAKDFNFU1NJT05fTE9TVBAEEhAKDE5PREVfREVMRVRFRBAFEgoKBkNMT1NFRBAGEgwKCE5PVF9IRUxEEAcSCwoHSU5WQUxJRBAIEgsKB05PX0FV
VEgQCRIPCgtVTkFWQUlMQUJMRRAKEhYKElNFUVVFTkNFX0VYSEFVU1RFRBALEgwKCElOVEVSTkFMEAwSCwoHU1RPUFBFRBANEhIKDkxJTUlUX0VYQ0VFREVEEA4SEwoPT1VUQ09N
RV9VTktOT1dOEA8SEgoOV09VTERfREVBRExPQ0sQEBIQCgxESVNDT05ORUNURUQQERIQCgxIT0xEX0VYUElSRUQQEhIMCghEUkFJTklORxATEhAKDE5PX0RJUkVDVE9SWRAUKioK
BEtpbmQSDQoJRVhDTFVTSVZFEAASCAoEUkVBRBABEgkKBVdSSVRFEAIyogEKBExvY2sSMQoHQWNxdWlyZRISLmFjdG9ybG9jay5BY3F1aXJlGhIuYWN0b3Jsb2NrLkdyYW50ZWQS
MwoGQ2FuY2VsEhEuYWN0b3Jsb2NrLkNhbmNlbBoWLmdvb2dsZS5wcm90b2J1Zi5FbXB0eRIyCgdSZWxlYXNlEhIuYWN0b3Jsb2NrLlJlbGVhc2UaEy5hY3RvcmxvY2suUmVsZWFz
ZWQynAMKBU93bmVyEjUKB0dyYW50ZWQSEi5hY3RvcmxvY2suR3JhbnRlZBoWLmdvb2dsZS5wcm90b2J1Zi5FbXB0eRI1CgdSZWZ1c2VkEhIuYWN0b3Jsb2NrLlJlZnVzZWQaFi5n
b29nbGUucHJvdG9idWYuRW1wdHkSNwoIUmVsZWFzZWQSEy5hY3RvcmxvY2suUmVsZWFzZWQaFi5nb29nbGUucHJvdG9idWYuRW1wdHkSLwoETG9zdBIPLmFjdG9ybG9jay5Mb3N0
GhYuZ29vZ2xlLnByb3RvYnVmLkVtcHR5EjkKCVN1c3BlbmRlZBIULmFjdG9ybG9jay5TdXNwZW5kZWQaFi5nb29nbGUucHJvdG9idWYuRW1wdHkSRQoPUmV2b2tlUmVxdWVzdGVk
EhouYWN0b3Jsb2NrLlJldm9rZVJlcXVlc3RlZBoWLmdvb2dsZS5wcm90b2J1Zi5FbXB0eRI5CglDb250ZW5kZWQSFC5hY3RvcmxvY2suQ29udGVuZGVkGhYuZ29vZ2xlLnByb3Rv
YnVmLkVtcHR5QilaJ2dpdGh1Yi5jb20vYWN0b3Jsb2NrL2FjdG9ybG9jay9tZXNzYWdlc2IGcHJvdG8zCsYWChZhY3RvcmxvY2svcmVtb3RlLnByb3RvEglhY3RvcmxvY2saFGFj
dG9ybG9jay9sb2NrLnByb3RvItcBCgtDbGllbnRGcmFtZRImCgVoZWxsbxgBIAEoCzIQLmFjdG9ybG9jay5IZWxsb1IFaGVsbG8SJgoFcmVuZXcYAiABKAsyEC5hY3RvcmxvY2su
UmVuZXdSBXJlbmV3EhAKA2J5ZRgDIAEoCFIDYnllEhoKCHJlY2VpdmVkGAQgASgEUghyZWNlaXZlZBIUCgVmaXJzdBgFIAEoBFIFZmlyc3QSNAoIbWVzc2FnZXMYBiADKAsyGC5h
Y3RvcmxvY2suQ2xpZW50TWVzc2FnZVIIbWVzc2FnZXMiugIKC1NlcnZlckZyYW1lEiwKB3dlbGNvbWUYASABKAsyEi5hY3RvcmxvY2suV2VsY29tZVIHd2VsY29tZRIsCgdyZW5l
d2VkGAIgASgLMhIuYWN0b3Jsb2NrLlJlbmV3ZWRSB3JlbmV3ZWQSJgoFc3RhdGUYAyABKAsyEC5hY3RvcmxvY2suU3RhdGVSBXN0YXRlEiYKBWVuZGVkGAQgASgLMhAuYWN0b3Js
b2NrLkVuZGVkUgVlbmRlZBIXCgdnb19hd2F5GAUgASgIUgZnb0F3YXkSGgoIcmVjZWl2ZWQYBiABKARSCHJlY2VpdmVkEhQKBWZpcnN0GAcgASgEUgVmaXJzdBI0CghtZXNzYWdl
cxgIIAMoCzIYLmFjdG9ybG9jay5TZXJ2ZXJNZXNzYWdlUghtZXNzYWdlcyKIAQoFSGVsbG8SGAoHdmVyc2lvbhgBIAEoDVIHdmVyc2lvbhIUCgVsZWFzZRgCIAEoBFIFbGVhc2US
FQoGbGV0X2dvGAMgASgEUgVsZXRHbxIgCgtpbmNhcm5hdGlvbhgEIAEoBFILaW5jYXJuYXRpb24SFgoGY2xpZW50GAUgASgJUgZjbGllbnQiwQEKB1dlbGNvbWUSFAoFbGVhc2UY
ASABKARSBWxlYXNlEhgKB3Jlc3VtZWQYAiABKAhSB3Jlc3VtZWQSIAoLaW5jYXJuYXRpb24YAyABKARSC2luY2FybmF0aW9uEiYKBXN0YXRlGAQgASgLMhAuYWN0b3Jsb2NrLlN0
YXRlUgVzdGF0ZRIZCgh1cF9uYW5vcxgFIAEoA1IHdXBOYW5vcxIhCgxhd2FpdHNfbm9kZXMYBiABKAhSC2F3YWl0c05vZGVzIjEKBVJlbmV3EhYKBm51bWJlchgBIAEoBFIGbnVt
YmVyEhAKA2dvdBgCIAEoBFIDZ290Ij4KB1JlbmV3ZWQSFgoGbnVtYmVyGAEgASgEUgZudW1iZXISGwoJZm9yX25hbm9zGAIgASgDUghmb3JOYW5vcyJcCgVTdGF0ZRIcCgljb25u
ZWN0ZWQYASABKAhSCWNvbm5lY3RlZBIWCgZkZXRhaWwYAiABKAlSBmRldGFpbBIdCgpzZXNzaW9uX2lkGAMgASgDUglzZXNzaW9uSWQiSgoFRW5kZWQSKQoGcmVhc29uGAEgASgO
MhEuYWN0b3Jsb2NrLlJlYXNvblIGcmVhc29uEhYKBmRldGFpbBgCIAEoCVIGZGV0YWlsIp4CCg1DbGllbnRNZXNzYWdlEjIKB2FjcXVpcmUYASABKAsyFi5hY3RvcmxvY2suQWNx
dWlyZUxvY2tIAFIHYWNxdWlyZRIrCgZjYW5jZWwYAiABKAsyES5hY3RvcmxvY2suQ2FuY2VsSABSBmNhbmNlbBIuCgdyZWxlYXNlGAMgASgLMhIuYWN0b3Jsb2NrLlJlbGVhc2VI
AFIHcmVsZWFzZRIxCghxdWVzdGlvbhgEIAEoCzITLmFjdG9ybG9jay5RdWVzdGlvbkgAUghxdWVzdGlvbhIcCgh3aXRoZHJhdxgFIAEoBEgAUgh3aXRoZHJhdxIjCgxob2xkX2V4
cGlyZWQYBiABKARIAFILaG9sZEV4cGlyZWRCBgoEd2hhdCL9AgoNU2VydmVyTWVzc2FnZRIuCgdncmFudGVkGAEgASgLMhIuYWN0b3Jsb2NrLkdyYW50ZWRIAFIHZ3JhbnRlZBIu
CgdyZWZ1c2VkGAIgASgLMhIuYWN0b3Jsb2NrLlJlZnVzZWRIAFIHcmVmdXNlZBIxCghyZWxlYXNlZBgDIAEoCzITLmFjdG9ybG9jay5SZWxlYXNlZEgAUghyZWxlYXNlZBIlCgRs
b3N0GAQgASgLMg8uYWN0b3Jsb2NrLkxvc3RIAFIEbG9zdBJHChByZXZva2VfcmVxdWVzdGVkGAUgASgLMhouYWN0b3Jsb2NrLlJldm9rZVJlcXVlc3RlZEgAUg9yZXZva2VSZXF1
ZXN0ZWQSNAoJY29udGVuZGVkGAYgASgLMhQuYWN0b3Jsb2NrLkNvbnRlbmRlZEgAUgljb250ZW5kZWQSKwoGYW5zd2VyGAcgASgLMhEuYWN0b3Jsb2NrLkFuc3dlckgAUgZhbnN3
ZXJCBgoEd2hhdCJ4CgtBY3F1aXJlTG9jaxISCgRwYXRoGAEgASgJUgRwYXRoEicKBGxvY2sYAiABKAsyEy5hY3RvcmxvY2suTG9ja1NwZWNSBGxvY2sSLAoHYWNxdWlyZRgDIAEo
CzISLmFjdG9ybG9jay5BY3F1aXJlUgdhY3F1aXJlIqECCghMb2NrU3BlYxIpCgZyZWNpcGUYASABKA4yES5hY3RvcmxvY2suUmVjaXBlUgZyZWNpcGUSGAoHcGVybWl0cxgCIAEo
DVIHcGVybWl0cxIdCgpjb3VudF9wYXRoGAMgASgJUgljb3VudFBhdGgSHwoLZGVsYXlfbmFub3MYBCABKANSCmRlbGF5TmFub3MSNgoLbG9jYWxfcXVldWUYBSABKAsyFS5hY3Rv
cmxvY2suTG9jYWxRdWV1ZVIKbG9jYWxRdWV1ZRIrCgdtZW1iZXJzGAYgAygLMhEuYWN0b3Jsb2NrLk1lbWJlclIHbWVtYmVycxIrChFyZXF1aXJlX2RpcmVjdG9yeRgHIAEoCFIQ
cmVxdWlyZURpcmVjdG9yeSJmCgpMb2NhbFF1ZXVlEhYKBmdyYW50cxgBIAEoA1IGZ3JhbnRzEh0KCnRpbWVfbmFub3MYAiABKANSCXRpbWVOYW5vcxIhCgxsaW5nZXJfbmFub3MY
AyABKANSC2xpbmdlck5hbm9zIlkKBk1lbWJlchISCgRwYXRoGAEgASgJUgRwYXRoEicKBGxvY2sYAiABKAsyEy5hY3RvcmxvY2suTG9ja1NwZWNSBGxvY2sSEgoEa2luZBgDIAEo
DVIEa2luZCKJAQoIUXVlc3Rpb24SDgoCaWQYASABKARSAmlkEhIKBGtpbmQYAiABKAlSBGtpbmQSEgoEcGF0aBgDIAEoCVIEcGF0aBInCgRsb2NrGAQgASgLMhMuYWN0b3Jsb2Nr
LkxvY2tTcGVjUgRsb2NrEhwKCWFyZ3VtZW50cxgFIAEoDFIJYXJndW1lbnRzInEKBkFuc3dlchIOCgJpZBgBIAEoBFICaWQSFAoFdmFsdWUYAiABKAxSBXZhbHVlEikKBnJlYXNv
bhgDIAEoDjIRLmFjdG9ybG9jay5SZWFzb25SBnJlYXNvbhIWCgZkZXRhaWwYBCABKAlSBmRldGFpbCpUCgZSZWNpcGUSCQoFTVVURVgQABIOCgpSRUFEX1dSSVRFEAESDQoJU0VN
QVBIT1JFEAISEAoMTEVBREVSX0xBVENIEAMSDgoKTVVMVElfTE9DSxAEQilaJ2dpdGh1Yi5jb20vYWN0b3Jsb2NrL2FjdG9ybG9jay9tZXNzYWdlc2IGcHJvdG8z
"""

_pool = descriptor_pool.DescriptorPool()
for _each in descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(_MESSAGES)).file:
    _pool.Add(_each)


def _message(name):
    found = _pool.FindMessageTypeByName("actorlock." + name)
    if hasattr(message_factory, "GetMessageClass"):  # protobuf 4.22
        return message_factory.GetMessageClass(found)
    return message_factory.MessageFactory(_pool).GetPrototype(found)


_ClientFrame, _ClientMessage, _ServerFrame = _message("ClientFrame"), _message("ClientMessage"), _message("ServerFrame")
_reasons = {v.number: v.name for v in _pool.FindEnumTypeByName("actorlock.Reason").values}
_log = logging.getLogger("actorlock")

_MAX_FRAME = 2 << 20  # bytes of a frame
_MAX_MESSAGE = 1 << 20  # bytes of a message in it
_MAX_MESSAGES = 256  # messages in a frame
_MAX_UNHANDLED = 16  # frames of a stream that are not handled yet
_MAX_PROMISE = 3600  # seconds; no server promises more
_DRIFT = 1 / 200  # of a promise, for the difference of clocks
_TRY = 15  # seconds until the answer to a try
_PAUSE = 0.2  # seconds until the next attempt
_OPTIONS = [("grpc.keepalive_time_ms", 10000), ("grpc.keepalive_timeout_ms", 5000), ("grpc.max_receive_message_length", _MAX_FRAME),
            ("grpc.use_local_subchannel_pool", 1)]  # a stream that is opened anew has a connection of its own

TLS = collections.namedtuple("TLS", "ca cert key")
TLS.__doc__ = """The names of PEM files: the authority of the servers, and the certificate and key of the client. They are read again for each
connection."""


class Error(Exception):
    """The base of all errors of this module."""


class Unavailable(Error):
    """No lock server grants a lease."""


class NotAcquired(Error):
    """The lock was not granted within the time-out."""


class Refused(Error):
    """The server refuses a request; reason is the name of the Reason in lock.proto."""

    def __init__(self, reason, detail):
        super().__init__("%s: %s" % (reason.lower(), detail))
        self.reason = reason


class Lost(Error):
    """The grant has ended without a release."""


class Closed(Error):
    """The client is closed."""


def _clock():
    if hasattr(time, "CLOCK_BOOTTIME"):  # it goes on while the machine is suspended
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class _LostEvent(threading.Event):
    """Is also set when the lease is over and no thread has run since."""

    def __init__(self, lease):
        super().__init__()
        self._lease = lease

    def is_set(self):
        return super().is_set() or _clock() >= self._lease.until

    def wait(self, timeout=None):
        """Waits until the grant is lost, at most for the time-out, and returns whether it is."""
        super().wait(timeout)
        return self.is_set()


class Grant:
    """Proof of holding a lock."""

    def __init__(self, request, lease, message):
        self._request, self._lease = request, lease
        self.path, self.node = message.path, message.node
        #: The fencing token, whose texts sort as the tokens do: send it with each write.
        self.token = "%016x.%016x.%08x" % (message.generation, message.czxid, message.step)
        #: A threading.Event that is set when the grant is lost.
        self.lost = _LostEvent(lease)
        #: A threading.Event that is set when another client asks for the lock, or the server ends: release soon.
        self.revoked = threading.Event()
        self._why = None

    def check(self):
        """Raises Lost if the grant is lost."""
        if self.lost.is_set():
            raise Lost(self._why or "the lease is over")

    def release(self, timeout=5):
        """Gives the lock back, and waits until ZooKeeper has it, at most for timeout seconds. It raises Lost if the grant was lost."""
        self._request.client._release(self._request, self, timeout)


class Lock:
    """A lock of a client, by Client.lock and its siblings. As a context manager it acquires and releases."""

    def __init__(self, client, path, timeout, spec, acquire):
        self._client, self.path, self.timeout, self._spec, self._acquire = client, path, timeout, spec, acquire
        self._entered = threading.local()

    def acquire(self, timeout=None):
        """Waits for the lock and returns a Grant. timeout is in seconds: None waits without limit, 0 tries once. It raises NotAcquired,
        Refused, Closed, Unavailable for a try without a lease, or ValueError for a path, number or timeout that no server can have."""
        if timeout is not None and not 0 <= timeout <= threading.TIMEOUT_MAX:
            raise ValueError("timeout %r: it must be a number of seconds from 0, or None" % (timeout,))
        return self._client._acquire_lock(self, timeout)

    def __enter__(self):
        grant = self.acquire(self.timeout)
        self._entered.__dict__.setdefault("grants", []).append(grant)
        return grant

    def __exit__(self, kind, error, trace):
        try:
            self._entered.grants.pop().release()
        except Error:
            if kind is None:  # otherwise the error of the body is the one to see
                raise


class _Request:
    def __init__(self, client, number, lock, attempt):
        self.client, self.number, self.lock, self.attempt = client, number, lock, attempt
        self.answered, self.released = threading.Event(), threading.Event()
        self.grant = self.error = self.early = None  # early: a Granted before the first promise
        if not isinstance(lock.path, str):
            raise ValueError("path %r: it must be a str" % (lock.path,))
        try:
            self.message = _ClientMessage(acquire={"path": lock.path, "lock": lock._spec, "acquire": {"request_id": number, "try": attempt, **lock._acquire}})
            size = self.message.ByteSize()
        except (TypeError, ValueError) as err:  # a text that is not UTF-8, a number that is not one of permits
            raise ValueError("%.200r, %r, %r: %s" % (lock.path, lock._spec, lock._acquire, err)) from err
        if size > _MAX_MESSAGE:
            raise ValueError("path of %d characters: a message must be at most %d bytes" % (len(lock.path), _MAX_MESSAGE))

    def answer(self, grant=None, error=None):
        self.grant, self.error = grant, error
        self.answered.set()


class _Lease:
    """What belongs to a lease, which outlives its streams."""

    def __init__(self, server):
        self.server, self.id, self.incarnation = server, 0, 0
        self.until = float("-inf")  # the end of the belief; before the first promise there is none
        self.promised = self.draining = False
        self.sent, self.received, self.unconfirmed = 0, 0, []  # numbers of messages; those that the server may not have
        self.renewals, self.number, self.got = {}, 0, 0  # number -> when it was sent; the newest; the newest with an answer


class _Stream:
    """One stream, and the threads of gRPC that it has."""

    def __init__(self, client, server, hello):
        self.client, self.out, self.room = client, queue.Queue(), threading.Semaphore(_MAX_UNHANDLED)
        self.welcomed, self.ended, self.heard = False, False, _clock()
        self.channel = client._channel(server)
        self.out.put(_ClientFrame(hello=hello))
        connect = self.channel.stream_stream("/actorlock.LockServer/Connect", _ClientFrame.SerializeToString, _ServerFrame.FromString)
        self.call = connect(iter(self.out.get, None))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        why = "the server has ended the stream"
        try:
            for frame in self.call:
                self.room.acquire()  # bounds what a server can have the client keep
                self.client._events.put((self, frame))
                if self.ended:
                    return
        except grpc.RpcError as err:
            why = "%s: %s" % (err.code().name, err.details()) if hasattr(err, "code") else str(err)
        except Exception as err:  # such as a frame that is no message
            why = repr(err)
        self.client._events.put((self, why))

    def close(self):
        self.ended = True
        self.out.put(None)
        self.room.release()
        self.call.cancel()
        self.channel.close()


class _Violation(Exception):
    """The server breaks the protocol."""


class Client:
    """A session with one of the lock servers, "host:port,host:port" or a list. It blocks until it has a lease, at most for timeout
    seconds, and raises Unavailable then. tls is a TLS; insecure=True connects without. Any thread may use it. name is the program, for
    people."""

    def __init__(self, servers, *, tls=None, insecure=False, timeout=15, name=None):
        if (tls is None) == (not insecure):
            raise ValueError("tls is missing: give a TLS, or insecure=True" if tls is None else "tls and insecure: choose one of them")
        self._servers = [s.strip() for s in servers.split(",")] if isinstance(servers, str) else list(servers)
        if not self._servers or not all(self._servers):
            raise ValueError("servers %r: it must have a host:port" % (servers,))
        random.shuffle(self._servers)  # so that clients with one list are shared out
        self._tls, self._credentials = tls, None
        if tls is not None:
            self._read_tls()
        self._name = (name or os.path.basename(sys.argv[0]) or "python").encode(errors="replace").decode()
        self._lock, self._ready, self._events = threading.RLock(), threading.Event(), queue.Queue()
        self._requests, self._last = {}, 0
        self._lease = self._stream = self._closing = None
        self._failures, self._at = {}, 0  # server -> the last error; the index of the server to ask
        self._open_at, self._renew_at = _clock(), float("inf")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="actorlock", daemon=True)
        self._thread.start()
        if not self._ready.wait(timeout):
            self.close(timeout=0.5)
            raise Unavailable("no lock server grants a lease: " + (", ".join("%s: %s" % f for f in self._failures.items()) or "no answer"))

    def _read_tls(self):
        texts = []
        for name in (self._tls.ca, self._tls.key, self._tls.cert):
            with open(name, "rb") as file:
                texts.append(file.read())
        self._credentials = grpc.ssl_channel_credentials(*texts)

    def lock(self, path, timeout=None):
        """Returns a mutex, whose time-out in seconds counts for with."""
        return Lock(self, path, timeout, {}, {})

    def read_lock(self, path, timeout=None):
        """Returns the read lock of a read-write lock."""
        return Lock(self, path, timeout, {"recipe": "READ_WRITE"}, {"kind": 1})

    def write_lock(self, path, timeout=None):
        """Returns the write lock of a read-write lock."""
        return Lock(self, path, timeout, {"recipe": "READ_WRITE"}, {"kind": 2})

    def semaphore(self, path, permits, timeout=None, take=1):
        """Returns a semaphore of so many permits, the same number for all its users, of which a grant takes some."""
        return Lock(self, path, timeout, {"recipe": "SEMAPHORE", "permits": permits}, {"permits": take})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self, timeout=5):
        """Gives back all that the client holds, ends what waits with Closed, and ends the lease, for which it waits timeout seconds at
        most. It returns whether the server has confirmed that."""
        with self._lock:
            if self._closing is None:
                self._closing = _clock() + timeout
                self._confirmed = False
                for r in list(self._requests.values()):
                    self._drop(r, "the client is closed", Closed("the client is closed"))
                self._say_bye()
        self._events.put((None, None))  # wakes the thread
        self._ended.wait(timeout + 1)
        return self._confirmed

    # ---- requests, by any thread

    def _acquire_lock(self, lock, timeout):
        with self._lock:
            if self._closing is not None:
                raise Closed("the client is closed")
            if timeout == 0 and not self._usable():
                raise Unavailable("no lock server has granted a lease at present")
            r = _Request(self, self._last + 1, lock, timeout == 0)
            self._last += 1
            self._requests[r.number] = r
            if self._usable():
                self._send(r.message)
        try:
            answered = r.answered.wait(_TRY if timeout == 0 else timeout)
        except BaseException:  # such as KeyboardInterrupt
            self._withdraw(r, granted=True)
            raise
        if not answered and self._withdraw(r):
            if timeout == 0:
                raise Unavailable("no answer within %s s" % _TRY)
            raise NotAcquired("%s is not granted within %s s" % (lock.path, timeout))
        if r.error is not None:
            raise r.error
        return r.grant

    def _withdraw(self, r, granted=False):
        """Cancels a request without an answer, or also one that is granted, and reports whether it has."""
        with self._lock:
            if r.error is not None or r.grant is not None and not granted:
                return False
            self._requests.pop(r.number, None)
            if self._lease is not None and self._lease.id:
                self._send(_ClientMessage(cancel={"request_id": r.number}))
            return True

    def _release(self, r, grant, timeout):
        with self._lock:
            grant.check()
            if self._requests.get(r.number) is not r:
                raise Closed("the grant was released before")
            if not r.released.is_set():
                self._send(_ClientMessage(release={"request_id": r.number}))
        r.released.wait(timeout)
        with self._lock:
            done, why = r.released.is_set(), r.error
            self._requests.pop(r.number, None)
            self._leave_if_drained()
        if why is not None:
            raise why
        if not done:
            raise Error("no answer to the release of %s within %s s: the lock stays taken until the server has it, or the lease ends" % (grant.path, timeout))

    # ---- the lease, under the lock

    def _usable(self):
        return self._lease is not None and self._lease.id != 0 and not self._lease.draining

    def _send(self, what):
        lease = self._lease
        if lease is None:
            return
        lease.sent += 1
        lease.unconfirmed.append(what)
        if self._stream is not None and self._stream.welcomed:
            self._stream.out.put(_ClientFrame(received=lease.received, first=lease.sent, messages=[what]))

    def _send_again(self):
        """Sends what the server may not have, in frames that it accepts."""
        lease, first = self._lease, 0
        while first < len(lease.unconfirmed):
            last, size = first + 1, lease.unconfirmed[first].ByteSize()
            while last < len(lease.unconfirmed) and last - first < _MAX_MESSAGES and size + lease.unconfirmed[last].ByteSize() < _MAX_MESSAGE:
                size += lease.unconfirmed[last].ByteSize() + 8  # with its header
                last += 1
            self._stream.out.put(_ClientFrame(received=lease.received, first=lease.sent - len(lease.unconfirmed) + first + 1,
                                              messages=lease.unconfirmed[first:last]))
            first = last

    def _say_bye(self):
        if self._stream is not None and self._stream.welcomed:
            self._stream.out.put(_ClientFrame(received=self._lease.received, bye=True))
            self._stream.out.put(None)
            return True
        return False

    def _drop(self, r, why, error):
        """Ends a request or its grant."""
        self._requests.pop(r.number, None)
        if r.grant is not None:
            r.grant._why = why
            r.grant.lost.set()
        r.answer(r.grant, error)
        r.released.set()

    def _lose(self, why):
        """Lets go of the lease. What waits queues anew."""
        if self._lease is None:
            return
        _log.warning("the lease of %s is lost: %s", self._lease.server, why)
        self._failures[self._lease.server] = why
        self._next(why)

    def _next(self, why):
        """Has another server asked, after a pause."""
        self._lease = None
        self._renew_at = float("inf")
        self._end_stream()
        self._at = (self._at + 1) % len(self._servers)
        for r in list(self._requests.values()):
            r.early = None
            if r.grant is not None:
                self._drop(r, why, Lost(why))
            elif r.attempt:
                self._drop(r, why, Unavailable(why))

    def _end_stream(self):
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        self._open_at = _clock() + _PAUSE * random.uniform(0.5, 1.5)

    def _leave_if_drained(self):
        """Moves on from a server that ends, once nothing is held there."""
        lease = self._lease
        if lease is not None and lease.draining and all(r.grant is None for r in self._requests.values()) and self._say_bye():
            self._lease = None  # the server ends the stream
            self._renew_at = float("inf")

    def _channel(self, server):
        if self._tls is None:
            return grpc.insecure_channel(server, _OPTIONS)
        try:
            self._read_tls()  # they may be renewed
        except OSError as why:
            _log.error("the files of certificates cannot be read, and those before count on: %s", why)
        return grpc.secure_channel(server, self._credentials, _OPTIONS)

    # ---- the thread

    def _run(self):
        try:
            self._serve()
        except Exception as why:  # a defect of this module: nothing may hang for it
            _log.exception("the client has failed")
            with self._lock:
                self._closing, self._confirmed = self._closing or _clock(), False
                self._end_stream()
                for r in list(self._requests.values()):
                    self._drop(r, repr(why), Closed("the client has failed: %r" % why) if r.grant is None else Lost(repr(why)))
                self._lease = None
                self._ended.set()

    def _serve(self):
        while True:
            with self._lock:
                wake = min(self._open_at if self._stream is None else float("inf"), self._renew_at, self._closing or float("inf"),
                           self._lease.until if self._lease is not None and self._lease.promised else float("inf"))
            try:
                stream, event = self._events.get(timeout=max(min(wake - _clock(), 3600), 0))
            except queue.Empty:
                stream, event = None, None
            with self._lock:
                try:
                    self._handle(stream, event)
                except _Violation as why:
                    _log.warning("%s breaks the protocol: %s", self._servers[self._at], why)
                    self._failures[self._servers[self._at]] = str(why)
                    self._broken(str(why))
                if isinstance(event, _ServerFrame):
                    stream.room.release()
                if self._closing is not None and (self._confirmed or _clock() >= self._closing):
                    self._end_stream()
                    self._lease = None
                    self._ended.set()
                    return

    def _handle(self, stream, event):
        now = _clock()
        lease = self._lease
        if lease is not None and lease.promised and now >= lease.until:  # before any message counts
            self._lose("the lease is over: %s drains" % lease.server if lease.draining else "the lease is over: %s has not renewed it in time" % lease.server)
        if stream is not None and stream is self._stream:
            if isinstance(event, str):
                self._failures[self._servers[self._at]] = event
                if self._closing is not None and stream.welcomed:
                    self._confirmed = event == "the server has ended the stream"
                self._broken(event)
            else:
                stream.heard = now
                self._frame(stream, event, now)
        if now >= self._renew_at and self._stream is not None:
            if now - self._stream.heard > 2 * self._pause(now) + 1:  # the connection may be dead
                self._broken("no answer")
            else:
                self._renew(now)
        if self._stream is None and now >= self._open_at and (self._closing is None or self._lease is not None):
            self._open()

    def _open(self):
        if self._lease is None:
            self._lease = _Lease(self._servers[self._at])
        lease = self._lease
        self._stream = _Stream(self, lease.server, {"version": 1, "client": self._name, "lease": lease.id, "incarnation": lease.incarnation})
        self._renew_at = _clock() + max(self._pause(_clock()), 1)

    def _broken(self, why):
        """Ends a stream. The lease goes on until its end."""
        lease = self._lease
        if lease is None or not lease.promised:
            self._next(why)
        else:
            self._end_stream()

    def _pause(self, now):
        """Returns the time between two renewals."""
        lease = self._lease
        return max((lease.until - now) / 3, 0.1) if lease is not None and lease.promised else 0.5

    def _renew(self, now):
        lease = self._lease
        if lease is None or not self._stream.welcomed:
            self._renew_at = now + self._pause(now)
            return
        lease.number += 1
        lease.renewals[lease.number] = _clock()  # before it is sent
        if len(lease.renewals) > 100:
            del lease.renewals[min(lease.renewals)]
        self._stream.out.put(_ClientFrame(received=lease.received, renew={"number": lease.number, "got": lease.got}))
        self._renew_at = now + self._pause(now)

    def _frame(self, stream, frame, now):
        """Checks all of a frame, and then handles it."""
        lease = self._lease
        if lease is None:
            return
        if frame.HasField("ended") and not stream.welcomed:
            why = "%s: %s" % (_reasons.get(frame.ended.reason, frame.ended.reason), frame.ended.detail)
            if lease.promised:
                return self._lose(why)
            raise _Violation(why)
        if frame.HasField("welcome") == stream.welcomed:
            raise _Violation("a Welcome must be in the first frame, and in no other")
        if frame.received > lease.sent or frame.received < lease.sent - len(lease.unconfirmed) and frame.HasField("welcome"):
            raise _Violation("message %d is confirmed, of %d" % (frame.received, lease.sent))
        if frame.messages and not 1 <= frame.first <= lease.received + 1:
            raise _Violation("message %d follows %d" % (frame.first, lease.received))
        if frame.HasField("renewed") and not 0 <= frame.renewed.for_nanos <= _MAX_PROMISE * 1e9:
            raise _Violation("a promise of %d ns" % frame.renewed.for_nanos)
        if frame.HasField("welcome"):
            if lease.id and not frame.welcome.resumed:
                return self._lose("%s does not know the lease any more" % lease.server)
            if not frame.welcome.lease or lease.id and (lease.id, lease.incarnation) != (frame.welcome.lease, frame.welcome.incarnation):
                raise _Violation("a Welcome of another lease")
        # All of it is valid.
        del lease.unconfirmed[:max(frame.received + len(lease.unconfirmed) - lease.sent, 0)]
        if frame.HasField("welcome"):
            self._welcomed(stream, lease, frame.welcome, now)
        if frame.HasField("renewed"):
            self._renewed(lease, frame.renewed, now)
        fresh = list(frame.messages)[lease.received + 1 - frame.first:] if frame.messages else []
        lease.received += len(fresh)
        for m in fresh:
            self._message(lease, m)
        if frame.go_away and not lease.draining:
            lease.draining = True
            for r in self._requests.values():
                if r.grant is not None:
                    r.grant.revoked.set()
            self._leave_if_drained()
        if frame.HasField("ended"):
            self._lose("%s: %s" % (_reasons.get(frame.ended.reason, frame.ended.reason), frame.ended.detail))

    def _welcomed(self, stream, lease, welcome, now):
        stream.welcomed = True
        fresh = lease.id == 0
        lease.id, lease.incarnation = welcome.lease, welcome.incarnation
        self._renew(now)
        if fresh:
            for r in self._requests.values():
                self._send(r.message)
        else:
            self._send_again()
        if self._closing is not None:
            self._say_bye()

    def _renewed(self, lease, renewed, now):
        if renewed.number <= lease.got or renewed.number not in lease.renewals:
            return
        lease.got = renewed.number
        until = lease.renewals[lease.got] + renewed.for_nanos / 1e9 * (1 - _DRIFT)
        lease.renewals = {n: at for n, at in lease.renewals.items() if n > lease.got}
        if renewed.for_nanos and until > now:
            lease.until, lease.promised = max(lease.until, until), True
            self._ready.set()
            for r in list(self._requests.values()):
                if r.early is not None:
                    self._granted(lease, r, r.early)
        self._renew_at = now + self._pause(now)

    def _granted(self, lease, r, message):
        if r.grant is not None:
            return
        if not lease.promised:
            r.early = message  # a grant counts while the client believes
            return
        r.early = None
        r.answer(grant=Grant(r, lease, message))

    def _message(self, lease, m):
        kind = m.WhichOneof("what")
        r = self._requests.get(getattr(getattr(m, kind), "request_id", 0)) if kind else None
        if r is None:
            return
        if kind == "granted":
            self._granted(lease, r, m.granted)
        elif kind == "released":
            r.released.set()
        elif kind == "revoke_requested" and r.grant is not None:
            r.grant.revoked.set()
        elif kind == "lost":
            self._send(_ClientMessage(release={"request_id": r.number}))
            why = "%s: %s" % (_reasons.get(m.lost.reason, m.lost.reason), m.lost.detail)
            self._drop(r, why, Lost(why))
        elif kind == "refused":
            reason = _reasons.get(m.refused.reason, str(m.refused.reason))
            self._drop(r, m.refused.detail, NotAcquired(m.refused.detail) if reason == "NOT_ACQUIRED" else Refused(reason, m.refused.detail))
