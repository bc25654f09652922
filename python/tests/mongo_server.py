"""A real server of MongoDB's protocol, a process of the test's own.

It is a server in Java that keeps documents in memory (see relay/mongo). It has neither users nor
limits on batches, and runs no JavaScript.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pymongo
from bson.codec_options import CodecOptions
from bson.binary import UuidRepresentation
from postgres_server import CACHE

JARS = CACHE / "mongo"
MAIN = Path(__file__).parent / "relay" / "mongo" / "Mongo.java"
DATABASE = "shop"


class MongoServer:
    def __init__(self) -> None:
        assert JARS.exists(), f"no server at {JARS}: run scripts/setup"
        command = ["java", "-Xmx2g", "-cp", f"{JARS}/*", str(MAIN)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(
            "127.0.0.1", self.port, tz_aware=True
        )
        options = CodecOptions(uuid_representation=UuidRepresentation.STANDARD, tz_aware=True)
        self.database = self.client.get_database(DATABASE, codec_options=options)

    def uri(self, options: str = "", *, port: int = 0) -> str:
        """Options begin with ``?``."""
        return f"mongodb://127.0.0.1:{port or self.port}/{DATABASE}{options}"

    def fill(self, name: str, documents: Any) -> list[dict[str, Any]]:
        """Makes a collection of these documents."""
        documents = list(documents)
        self.database[name].drop()
        for start in range(0, len(documents), 1000):
            self.database[name].insert_many(documents[start : start + 1000])
        return documents

    def stop(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
