"""All systems, in the order of the report, and those that cannot run here."""

from __future__ import annotations

from lab.systems import (
    arrow,
    clickhouse,
    derby,
    dray,
    flight_sql,
    hive,
    hive_4,
    hyper,
    mariadb,
    monetdb,
    mongo,
    netcat,
    postgres,
)

SYSTEMS = (
    netcat.SYSTEM,
    mariadb.MARIADB,
    mariadb.MYSQL,
    postgres.POSTGRES,
    postgres.POSTGRES_18,
    hyper.SYSTEM,
    derby.SYSTEM,
    hive.SYSTEM,
    hive_4.SYSTEM,
    mongo.SYSTEM,
    monetdb.SYSTEM,
    clickhouse.SYSTEM,
    dray.SYSTEM,
    arrow.FLIGHT,
    flight_sql.SYSTEM,
    arrow.QUACK,
)

#: What the paper or its readers would expect, and why it does not run here.
ABSENT = (
    ("DBMS X", "the paper does not tell its name; only its format is counted"),
    ("IBM DB2", "not to be had from a package registry; Derby speaks its protocol, DRDA"),
    ("Hive with Tez", "needs a Hadoop; Hive 4.0 reads a Parquet file without a job"),
    ("Oracle", "not to be had from a package registry"),
    (
        "MongoDB itself",
        "not to be had from a package registry; mongo-java-server speaks its protocol",
    ),
    (
        "MonetDB of today, and by ODBC",
        "the only server in a registry is the one of monetdbe, of 2021",
    ),
    ("MySQL 5.6 by ODBC", "MariaDB's driver asks for a variable that this server lacks"),
    ("MySQL's own ODBC and C library", "not in Debian; MariaDB's are used for both"),
    ("HyPer by COPY binary", "the server says that the format is disabled"),
    ("HyPer by ODBC", "PostgreSQL's driver sends two statements at once, which HyPer refuses"),
    ("ClickHouse of today", "chDB is embedded, without a protocol; Debian's server is of 2018"),
    ("ClickHouse by ODBC and JDBC", "their drivers use HTTP, and need newer servers"),
    ("LAN with a round trip of 0.3 ms", "no netem in this kernel; the emulator ends at 200 Mbit/s"),
)
