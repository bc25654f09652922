"""Text in all character sets and collations of MySQL and MariaDB, compared with what the server
itself converts to UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from mysql_server import MariaServer

import dray

#: The characters of the basic plane, and some beyond.
CODES = [*range(1, 0xD800), *range(0xE000, 0x10000), 0x10000, 0x1F434, 0x2A6D6, 0x10FFFD]
#: Characters in a value.
BLOCK = 1000
#: Columns of a table.
COLUMNS = 100


@pytest.fixture(scope="module")
def connection(mysql: MariaServer) -> Iterator[dray.Connection]:
    with dray.connect(mysql.uri()) as connection:
        yield connection


def literal(text: str) -> str:
    return f"_utf8mb4 X'{text.encode().hex()}'"


def test_character_sets(mysql: MariaServer, connection: dray.Connection) -> None:
    """All characters that each set has."""
    mysql.run(
        "DROP TABLE IF EXISTS characters, repertoire",
        "CREATE TABLE characters (code int PRIMARY KEY, c varchar(1) CHARACTER SET utf8mb4)",
        *(
            "INSERT INTO characters VALUES "
            + ", ".join(f"({code}, {literal(chr(code))})" for code in CODES[i : i + BLOCK])
            for i in range(0, len(CODES), BLOCK)
        ),
    )
    found = mysql.rows("SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS")
    sets = sorted(name for (name,) in found if name != "binary")
    assert len(sets) >= 39
    texts = {}
    for name in sets:
        known = mysql.rows(
            "SELECT code FROM characters "
            f"WHERE HEX(CONVERT(CONVERT(c USING {name}) USING utf8mb4)) = HEX(c) ORDER BY code"
        )
        text = "".join(chr(int(code)) for (code,) in known)
        assert len(text) > 100, name
        texts[name] = [text[i : i + BLOCK] for i in range(0, len(text), BLOCK)]
    rows = max(len(blocks) for blocks in texts.values())
    values = [
        ", ".join(literal(texts[name][i]) if i < len(texts[name]) else "NULL" for name in sets)
        for i in range(rows)
    ]
    mysql.run(
        # Rows are too large for InnoDB of MySQL 5.6.
        "CREATE TABLE repertoire (id int PRIMARY KEY, "
        + ", ".join(f"t_{name} text CHARACTER SET {name}" for name in sets)
        + ") ENGINE=MyISAM",
        *(f"INSERT INTO repertoire VALUES ({i}, {row})" for i, row in enumerate(values)),
    )
    converted = ", ".join(f"HEX(CONVERT(t_{name} USING utf8mb4))" for name in sets)
    oracle = mysql.rows(f"SELECT {converted} FROM repertoire ORDER BY id")
    columns = ", ".join(f"t_{name}" for name in sets)
    sql = f"SELECT {columns} FROM repertoire ORDER BY id"
    # Prepared, from the second time on.
    for _ in range(2):
        table = connection.query(sql).arrow()
        table.validate(full=True)
        for i, name in enumerate(sets):
            column = table.column(f"t_{name}")
            assert column.type == pa.string(), name
            got = [text and text.encode().hex().upper() for text in column.to_pylist()]
            assert got == [row[i] for row in oracle], name
            assert "".join(column.drop_null().to_pylist()) == "".join(texts[name]), name


def collations(mysql: MariaServer) -> list[tuple[str, str]]:
    """Each collation with its character set. MariaDB has some for several sets."""
    table = "information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
    names = [row[0] for row in mysql.rows(f"SHOW COLUMNS FROM {table}")]
    name = "FULL_COLLATION_NAME" if "FULL_COLLATION_NAME" in names else "COLLATION_NAME"
    return [
        (str(collation), str(character_set))
        for collation, character_set in mysql.rows(
            f"SELECT {name}, CHARACTER_SET_NAME FROM {table} "
            "WHERE CHARACTER_SET_NAME <> 'binary' ORDER BY 1"
        )
    ]


def test_collations_of_columns(mysql: MariaServer, connection: dray.Connection) -> None:
    found = collations(mysql)
    assert len(found) > 200
    for i in range(0, len(found), COLUMNS):
        some = found[i : i + COLUMNS]
        columns = ", ".join(
            f"c{j} varchar(9) CHARACTER SET {character_set} COLLATE {collation}"
            for j, (collation, character_set) in enumerate(some)
        )
        mysql.run(
            "DROP TABLE IF EXISTS collated",
            f"CREATE TABLE collated ({columns}) ENGINE=MyISAM",
            f"INSERT INTO collated VALUES ({', '.join(repr('Az') for _ in some)})",
        )
        table = connection.query("SELECT * FROM collated").arrow()
        assert table.schema.types == [pa.string()] * len(some), some
        assert list(table.to_pylist()[0].values()) == ["Az"] * len(some), some


def test_collations_of_sessions(mysql: MariaServer) -> None:
    """The server describes a result's text by the collation of the session."""
    found = [name for name, character_set in collations(mysql) if character_set == "utf8mb4"]
    assert len(found) > 20
    with dray.connect(mysql.uri()) as connection:
        for collation in found:
            connection.query(f"SET NAMES utf8mb4 COLLATE {collation}")
            assert list(connection.query("SELECT 'Grüße 🐴'")) == [("Grüße 🐴",)], collation
