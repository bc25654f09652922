"""Measures a link from inside its namespaces by numbered UDP packets, echoes, and a TCP stream.

Each part is a process that prints one line of JSON. `receive`, `echo` and `tcp-receive` print
`ready` first.
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import time
from contextlib import suppress

from lab.common.program import program_name

IP_AND_UDP_BYTES = 28
SEQUENCE = struct.Struct("!Q")
#: The sequence number that ends a run.
END = 2**64 - 1
ENDS = 20
#: From asm-generic/socket.h: sets a buffer size above the limit of other users.
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
BUFFER_BYTES = 16 * 1024 * 1024
#: A sender is ahead by this time, so that the line is not idle while the sender is not scheduled.
AHEAD_S = 0.03
TCP_WRITE_BYTES = 1024 * 1024
PING_INTERVAL_S = 0.02
PING_TIMEOUT_S = 2.0


def udp(port: int = 0) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    opened.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES)
    opened.bind(("0.0.0.0", port))
    return opened


def receive(port: int, idle_s: float) -> None:
    """Count packets until the last one arrives, or none arrives for `idle_s`."""
    buffer = bytearray(65536)
    packets = late = ip_bytes = first_bytes = 0
    highest = -1
    first = last = 0.0
    with udp(port) as opened:
        print("ready", flush=True)
        while True:
            try:
                size = opened.recv_into(buffer)
            except TimeoutError:
                break
            (sequence,) = SEQUENCE.unpack_from(buffer)
            if sequence == END:
                break
            last = time.monotonic()
            if packets == 0:
                opened.settimeout(idle_s)
                first, first_bytes = last, size + IP_AND_UDP_BYTES
            packets += 1
            ip_bytes += size + IP_AND_UDP_BYTES
            late += sequence < highest
            highest = max(highest, sequence)
    # The clock starts after the first packet has arrived, so its bytes do not count.
    bits_per_second = (ip_bytes - first_bytes) * 8 / (last - first) if last > first else 0.0
    print(json.dumps({"packets": packets, "late": late, "bits_per_second": bits_per_second}))


def send(address: str, port: int, ip_bytes: int, bits_per_second: float, duration_s: float) -> None:
    """Send packets of a size at a rate, in short bursts."""
    packet = bytearray(ip_bytes - IP_AND_UDP_BYTES)
    per_second = bits_per_second / 8 / ip_bytes
    sent = 0
    with udp() as opened:
        opened.connect((address, port))
        begin = time.monotonic()
        while (elapsed := time.monotonic() - begin) < duration_s:
            due = int((elapsed + AHEAD_S) * per_second)
            while sent < due:
                SEQUENCE.pack_into(packet, 0, sent)
                opened.send(packet)
                sent += 1
            time.sleep(0.0005)
        SEQUENCE.pack_into(packet, 0, END)
        for _ in range(ENDS):
            time.sleep(0.01)
            # The receiver ends when it has received the first.
            with suppress(ConnectionRefusedError):
                opened.send(packet)
    print(json.dumps({"packets": sent}))


def echo(port: int) -> None:
    """Send back each packet until killed."""
    with udp(port) as opened:
        print("ready", flush=True)
        while True:
            packet, sender = opened.recvfrom(2048)
            opened.sendto(packet, sender)


def ping(address: str, port: int, count: int) -> None:
    """Print the round trips of echoes in milliseconds, without lost ones."""
    round_trips_ms = []
    with udp() as opened:
        opened.connect((address, port))
        opened.settimeout(PING_TIMEOUT_S)
        for number in range(count):
            begin = time.monotonic()
            opened.send(SEQUENCE.pack(number) + bytes(28))
            try:
                while SEQUENCE.unpack_from(opened.recv(2048))[0] != number:
                    pass
            except TimeoutError:
                continue
            round_trips_ms.append((time.monotonic() - begin) * 1000)
            time.sleep(PING_INTERVAL_S)
    print(json.dumps({"round_trips_ms": round_trips_ms}))


def tcp_receive(port: int) -> None:
    """Accept one connection, and print the rate from its first byte to its last."""
    buffer = bytearray(TCP_WRITE_BYTES)
    with socket.create_server(("0.0.0.0", port)) as server:
        print("ready", flush=True)
        connection, _ = server.accept()
        with connection:
            total = first_bytes = connection.recv_into(buffer)
            begin = last = time.monotonic()
            while received := connection.recv_into(buffer):
                total += received
                last = time.monotonic()
    bits_per_second = (total - first_bytes) * 8 / (last - begin) if last > begin else 0.0
    print(json.dumps({"bits_per_second": bits_per_second}))


def tcp_send(address: str, port: int, congestion: str, duration_s: float) -> None:
    """Send zeros for a time with a congestion control; `-` is the default."""
    block = bytes(TCP_WRITE_BYTES)
    sent = 0
    with socket.socket() as opened:
        if congestion != "-":
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        opened.connect((address, port))
        begin = time.monotonic()
        while time.monotonic() - begin < duration_s:
            sent += opened.send(block)
    print(json.dumps({"bytes": sent}))


def main() -> None:
    parser = argparse.ArgumentParser(prog=program_name(), description=__doc__)
    parser.add_argument(
        "part", choices=("receive", "send", "echo", "ping", "tcp-receive", "tcp-send")
    )
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    words = given.words
    match given.part:
        case "receive":
            receive(int(words[0]), float(words[1]))
        case "send":
            send(words[0], int(words[1]), int(words[2]), float(words[3]), float(words[4]))
        case "echo":
            echo(int(words[0]))
        case "ping":
            ping(words[0], int(words[1]), int(words[2]))
        case "tcp-receive":
            tcp_receive(int(words[0]))
        case "tcp-send":
            tcp_send(words[0], int(words[1]), words[2], float(words[3]))


if __name__ == "__main__":
    main()
