"""kazoo's locks with the node names of Apache Curator, for paths that Go, Java and Python share.

By default kazoo's nodes have names of its own. Curator does not find the number in such a name, and
does not wait for its lock.
"""
from kazoo.recipe.lock import Lock, ReadLock, Semaphore, WriteLock


class CuratorLock(Lock):
    """Shares paths with InterProcessMutex."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class CuratorWriteLock(WriteLock):
    """Shares paths with InterProcessReadWriteLock's writeLock."""

    _NODE_NAME = "__WRIT__"
    _EXCLUDE_NAMES = ["__WRIT__", "__READ__"]


class CuratorReadLock(ReadLock):
    """Shares paths with InterProcessReadWriteLock's readLock. It takes kazoo 2.9: before, it deadlocks."""

    _NODE_NAME = "__READ__"
    _EXCLUDE_NAMES = ["__WRIT__"]


class CuratorSemaphore(Semaphore):
    """Shares paths with InterProcessSemaphoreV2, of as many leases."""

    def __init__(self, client, path, identifier=None, max_leases=1):
        super().__init__(_Client(client), path + "/leases", identifier, max_leases)
        self.lock_path = path + "/locks"

    def _ensure_path(self):
        self.client.ensure_path(self.path)  # without the number of leases in its data
        self.assured_path = True


class _Client:
    """A KazooClient whose Lock, which a Semaphore uses, is a CuratorLock."""

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        return getattr(self._client, name)

    def Lock(self, path, identifier=None):
        return CuratorLock(self._client, path, identifier)
