"""Logins by methods that Debian's MariaDB lacks, TLS, and compression."""

from __future__ import annotations

import os
from collections.abc import Callable
from urllib.parse import quote

import pytest
from mysql_server import DATABASE, SIGNING, VERSIONS, MariaServer
from postgres_server import CACHE

import dray

METHODS = ["caching_sha2_password", "sha256_password"]
NEW = [version for version in VERSIONS if version.startswith("mysql-8")]


@pytest.fixture(scope="module", params=NEW)
def server(
    start_mysql: Callable[[str], MariaServer], request: pytest.FixtureRequest
) -> MariaServer:
    server = start_mysql(str(request.param))
    for method in METHODS:
        user = method.partition("_")[0]
        server.run(
            f"CREATE USER {user} IDENTIFIED WITH {method} BY 'secret'",
            f"CREATE USER {user}_empty IDENTIFIED WITH {method} BY ''",
            f"GRANT SELECT ON *.* TO {user}, {user}_empty",
        )
    return server


def who(server: MariaServer, user: str, options: str = "") -> str:
    uri = f"mysql://{user}@127.0.0.1:{server.port}/{DATABASE}{options}"
    with dray.connect(uri) as connection:
        return str(list(connection.query("SELECT current_user()"))[0][0])


@pytest.mark.parametrize("method", METHODS)
def test_passwords(server: MariaServer, method: str) -> None:
    user = method.partition("_")[0]
    # The server forgets whose password it knows.
    server.run("FLUSH PRIVILEGES")
    plain = "?ssl-mode=DISABLED"
    with pytest.raises(dray.AuthenticationError, match="needs TLS") as caught:
        who(server, f"{user}:secret", plain)
    assert "get-server-public-key" in str(caught.value)
    for wrong in ("?ssl-mode=DISABLED&get-server-public-key=1", "?get-server-public-key=1"):
        with pytest.raises(dray.AuthenticationError, match="Access denied"):
            who(server, f"{user}:wrong", wrong)
    assert who(server, f"{user}:secret", f"{plain}&get-server-public-key=1") == f"{user}@%"
    server.run("FLUSH PRIVILEGES")
    key = server.folder / "data" / "public_key.pem"
    assert who(server, f"{user}:secret", f"{plain}&server-public-key-path={key}") == f"{user}@%"
    if method == "caching_sha2_password":
        # The server knows the password's hash now, and asks for no more.
        assert who(server, f"{user}:secret", plain) == f"{user}@%"
    assert who(server, f"{user}_empty", plain) == f"{user}_empty@%"
    server.run("FLUSH PRIVILEGES")
    with dray.connect(f"mysql://{user}:secret@localhost/?socket={server.socket}") as connection:
        assert list(connection.query("SELECT current_user()")) == [(f"{user}@%",)]


def cipher(server: MariaServer, options: str) -> str:
    with dray.connect(server.uri(options)) as connection:
        return str(list(connection.query("SHOW STATUS LIKE 'Ssl_cipher'"))[0][1])


def test_tls(server: MariaServer) -> None:
    if server.version == "mysql-8.0":
        # MySQL has had ciphers of ECDHE since it is built with OpenSSL 1.1.
        assert cipher(server, "") == ""
        with pytest.raises(dray.AuthenticationError, match="TLS handshake failed") as caught:
            cipher(server, "?ssl-mode=REQUIRED")
        assert "ECDHE" in str(caught.value)
        return
    assert cipher(server, "") and cipher(server, "?ssl-mode=REQUIRED")
    ca = server.folder / "data" / "ca.pem"
    assert cipher(server, f"?ssl-mode=VERIFY_CA&ssl-ca={ca}")
    for method in METHODS:
        user = method.partition("_")[0]
        server.run("FLUSH PRIVILEGES")
        assert who(server, f"{user}:secret", "?ssl-mode=REQUIRED") == f"{user}@%"


@pytest.mark.parametrize("version", [version for version in VERSIONS if "mysql-5" in version])
def test_tls_that_is_too_old(version: str) -> None:
    """PREFERRED, the default, does without it."""
    files = CACHE / "mysql" / "mysql-8.0" / "data"
    old = MariaServer(
        version,
        ssl_ca=files / "ca.pem",
        ssl_cert=files / "server-cert.pem",
        ssl_key=files / "server-key.pem",
    )
    try:
        assert old.rows("SHOW VARIABLES LIKE 'have_ssl'") == [("have_ssl", "YES")]
        assert cipher(old, "") == ""
        with pytest.raises(dray.AuthenticationError, match="TLS handshake failed"):
            cipher(old, "?ssl-mode=REQUIRED")
    finally:
        old.stop()


def test_zstd(server: MariaServer) -> None:
    sql = "SELECT repeat('x', 3000000) AS a, repeat('y', 20000000) AS b"
    with dray.connect(server.uri("?compress=zlib")) as connection:
        want = connection.query(sql).arrow()
    if server.version == "mysql-8.0":
        with pytest.raises(dray.UsageError, match="zstd, which 8.0.15 does not have"):
            dray.connect(server.uri("?compress=zstd"))
        return
    for options in ("?compress=zstd", "?compress=zstd&ssl-mode=DISABLED"):
        with dray.connect(server.uri(options)) as connection:
            status = dict(connection.query("SHOW STATUS LIKE 'Compression%'"))
            assert status["Compression"] == "ON"
            assert status["Compression_algorithm"] == "zstd"
            assert status["Compression_level"] == "3"
            assert connection.query(sql).arrow().equals(want)
            long = "z" * 17_000_000
            assert list(connection.query("SELECT length(?)", [long])) == [(len(long),)]


@pytest.mark.skipif(
    "DRAY_ALL_VERSIONS" not in os.environ, reason="DRAY_ALL_VERSIONS brings the server"
)
@pytest.mark.parametrize("password", ["it's a secret", "ü" * 40, "x"])
def test_parsec(start_mysql: Callable[[str], MariaServer], password: str) -> None:
    """A server of MariaDB checks the signature."""
    server = start_mysql(SIGNING)
    server.run(
        "INSTALL PLUGIN IF NOT EXISTS parsec SONAME 'auth_parsec'",
        "CREATE OR REPLACE USER signer IDENTIFIED VIA parsec USING PASSWORD('{}')".format(
            password.replace("'", "''")
        ),
    )
    ((plugin,),) = server.rows("SELECT plugin FROM mysql.user WHERE user = 'signer'")
    assert plugin == "parsec"
    uri = f"mysql://signer:{quote(password)}@127.0.0.1:{server.port}/"
    unix = f"mysql://signer:{quote(password)}@localhost/?socket={server.socket}"
    tls = [f"{uri}?ssl-mode={mode}" for mode in ("DISABLED", "REQUIRED")]
    for place in (uri, unix, *tls):
        with dray.connect(place) as connection:
            assert list(connection.query("SELECT current_user()")) == [("signer@%",)]
    for wrong in ("", "wrong", password + "x"):
        with pytest.raises(dray.AuthenticationError, match="Access denied"):
            dray.connect(f"mysql://signer:{quote(wrong)}@127.0.0.1:{server.port}/")
