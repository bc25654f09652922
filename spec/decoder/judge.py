"""Decodes containers of chunks (vectors/README.md): python judge.py < containers.

Each container is a u32 length and its bytes. The output has a line for each: the values of its
columns in the form of the vectors, or the refusal's name.
"""

import json
import sys

from cursor import Cursor, Refused
from test_decoder import decode_container
from values import column_values


def main():
    cursor = Cursor(sys.stdin.buffer.read(), short="input")
    while cursor.left():
        container = cursor.bytes("container")
        try:
            _, chunk = decode_container(container)
            print(json.dumps([column_values(column) for column in chunk.columns]))
        except Refused as refused:
            print(refused.name)


if __name__ == "__main__":
    main()
