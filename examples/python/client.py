#!/usr/bin/python3
"""Holds a lock of a lock server until its input ends:  client.py SERVERS LOCK [CA CERT KEY]

It prints "holds TOKEN", and "released" at the end. It exits with 70 when the lock is lost, in time: see actorlock.py, which does the work.
"""
import os, sys, threading

import actorlock


def main(servers, path, *tls):
    ended = threading.Event()  # the input, or the grant
    with actorlock.Client(servers, tls=actorlock.TLS(*tls) if tls else None, insecure=not tls) as client:
        state = {}

        def watch_input():
            sys.stdin.read()
            state["input"] = True
            if "grant" not in state:
                client.close()  # the acquire ends
            ended.set()

        threading.Thread(target=watch_input, daemon=True).start()
        try:
            grant = state["grant"] = client.lock(path).acquire()
        except actorlock.Closed:
            if not client.close():
                raise actorlock.Lost("the server has not confirmed the end of the lease")
            print("released", flush=True)
            return
        print("holds", grant.token, flush=True)
        threading.Thread(target=lambda: (grant.lost.wait(), ended.set()), daemon=True).start()
        ended.wait()
        grant.release()
    print("released", flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except actorlock.Error as why:
        print("lost:", why, flush=True)
        os._exit(70)  # at once: gRPC's threads may wait for the server
