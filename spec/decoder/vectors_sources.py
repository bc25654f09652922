"""Accepted and refused recordings of connections to named sources (protocol.md section 14)."""

from session_messages import *
from vectors_plans import part, plan
from writer import *  # the vocabulary of this page

VERSIONS = (6, 6)
PLAN_ONLY, EITHER, ESTIMATE, AS_NULL, AS_TEXT = 1, 4, 8, 16, 32  # flags of a query


def with_source(asked_for="shop", source="shop", dialect="postgresql", answers=b"") -> bytes:
    requests = hello(versions=VERSIONS, source=asked_for) + query() + GOODBYE
    return string(requests) + welcome(6, INSTANCE, source=source, dialect=dialect) + answers


def of_version_7(asked: bytes, *units: bytes, version=7, **trailer) -> bytes:
    requests = hello(versions=(6, 7), source="shop") + asked + GOODBYE
    greeted = welcome(version, INSTANCE, source="shop", dialect="mysql")
    answers = ended(started(asked=asked) + b"".join(units), **trailer)
    return string(requests) + greeted + answers


def with_path_behind_digest() -> bytes:
    """An answer whose digest does not cover its path."""
    trailer = finished(started(asked=query()))
    return of_version_7(query(), path())[: -len(trailer)] + trailer


def accepted_sources() -> dict[str, tuple[bytes, list[str]]]:
    answer = started(asked=query()) + sent(CHUNKS[0])
    failed = error(1, 10, "08006", "the source shop can't be reached")
    return {
        "version-6.session": (welcome(6, INSTANCE), ["welcome"]),
        "version-7.session": (welcome(7, INSTANCE), ["welcome"]),
        "estimates.requests": (
            hello(versions=(2, 7))
            + query(flags=ESTIMATE)
            + query(2, flags=ESTIMATE | PLAN_ONLY)
            + query(3, flags=ESTIMATE | EITHER)
            + GOODBYE,
            "hello query query query goodbye".split(),
        ),
        "unfit.requests": (
            hello(versions=(2, 7))
            + query(flags=AS_NULL)
            + query(2, flags=AS_TEXT | ESTIMATE | EITHER | PLAN_ONLY)
            + GOODBYE,
            "hello query query goodbye".split(),
        ),
        "unfit-text.exchange": (
            of_version_7(query(flags=AS_TEXT), sent(CHUNKS[0])),
            "welcome started chunk finished".split(),
        ),
        "estimate.exchange": (
            of_version_7(query(flags=ESTIMATE), sent(CHUNKS[0])),
            "welcome started chunk finished".split(),
        ),
        "path.exchange": (
            of_version_7(query(), path(), sent(CHUNKS[0]), path(text="")),
            "welcome started path chunk path finished".split(),
        ),
        "path-of-a-plan.exchange": (
            of_version_7(query(flags=PLAN_ONLY), path(text="caf\u00e9"), planned_only=1),
            "welcome started path finished".split(),
        ),
        "source.requests": (
            hello(versions=(6, 9), source="Shop_1-a") + query() + GOODBYE,
            ["hello", "query", "goodbye"],
        ),
        "release.requests": (
            hello(versions=VERSIONS) + RELEASE + RELEASE + query() + GOODBYE,
            "hello release release query goodbye".split(),
        ),
        "share.requests": (
            hello(versions=VERSIONS)
            + share()
            + share("pass-" + "0f" * 2045)
            + share("pass-")
            + plan()
            + cancel(1)
            + GOODBYE,
            "hello share share share plan cancel goodbye".split(),
        ),
        "source-longest.requests": (hello(versions=VERSIONS, source="x" * 64), ["hello"]),
        "source-none.requests": (hello(versions=VERSIONS), ["hello"]),
        "source.exchange": (
            with_source(answers=ended(answer)),
            "welcome started chunk finished".split(),
        ),
        "source-of-another-dialect.exchange": (
            with_source(dialect="something new", answers=error(1, 3, "42601", "syntax")),
            ["welcome", "error"],
        ),
        "source-lost.exchange": (
            with_source(answers=answer + failed),
            "welcome started chunk error".split(),
        ),
        "source-refused.exchange": (
            string(hello(versions=VERSIONS, source="shop"))
            + error(0, 2, "42501", "no source shop", "shop2"),
            ["error"],
        ),
    }


def rejected_sources() -> dict[str, bytes]:
    requests = {
        "payload-source-long": hello(versions=VERSIONS, source="x" * 65),
        "payload-source-slash": hello(versions=VERSIONS, source="a/b"),
        "payload-source-letter": hello(versions=VERSIONS, source="caf\u00e9"),
        "payload-source-utf8": hello(versions=VERSIONS, source=b"\xff"),
        "payload-source-more": hello(versions=VERSIONS, source="shop", after=b"\0"),
        "payload-source-missing": message(0x01, b"DRAY", u16(6), u16(6), string(""), string("")),
        "payload-release-more": hello(versions=VERSIONS) + message(0x08, b"\0"),
        "order-release-before-hello": RELEASE,
        "order-release-in-version-5": hello(versions=(2, 5)) + RELEASE,
        "payload-share-pass": hello(versions=VERSIONS) + share("s3cret"),
        "payload-share-pass-long": hello(versions=VERSIONS) + share("pass-" + "0" * 4092),
        "payload-share-more": hello(versions=VERSIONS) + share(after=b"\0"),
        "payload-share-cut": hello(versions=VERSIONS) + message(0x09, u32(7), b"pass-0"),
        "order-share-before-hello": share(),
        "order-share-in-version-5": hello(versions=(2, 5)) + share(),
        "payload-source-in-version-5": hello(versions=(5, 6), after=string("shop")),
        "order-estimate-before-version-7": hello(versions=(2, 6)) + query(flags=ESTIMATE),
        "payload-estimate-layout-3": hello(versions=(2, 7)) + query(flags=ESTIMATE | 6),
        "order-unfit-before-version-7": hello(versions=(2, 6)) + query(flags=AS_NULL),
        "payload-unfit-3": hello(versions=(2, 7)) + query(flags=AS_NULL | AS_TEXT),
        "payload-part-unfit": hello(versions=(2, 7)) + part(flags=AS_NULL),
        "payload-part-estimate": hello(versions=(2, 7)) + part(flags=ESTIMATE),
    }
    sessions = {
        "payload-welcome-6-without-source": message(0x81, u16(6), string("d"), INSTANCE),
        "payload-welcome-6-without-dialect": message(
            0x81, u16(6), string("d"), INSTANCE, string("")
        ),
        "payload-welcome-5-with-source": welcome(5, INSTANCE, after=string("") + string("")),
        "payload-welcome-6-more": welcome(6, INSTANCE, after=b"\0"),
        "query-source-unasked": welcome(6, INSTANCE, source="shop"),
        "payload-error-kind-11": welcome(6, INSTANCE) + error(kind=11),
    }
    exchanges = {
        "query-source-other": with_source(source="shop2"),
        "query-source-none": with_source(source=""),
        "order-path-of-version-6": of_version_7(query(), path(), version=6),
        "order-path-of-another-statement": of_version_7(query(), path(2)),
        "order-path-after-finished": of_version_7(query()) + path(),
        "payload-path-more": of_version_7(query(), path(after=b"\0")),
        "payload-path-cut": of_version_7(query(), message(0x8B, u32(1), u32(5), b"one")),
        "payload-path-utf8": of_version_7(query(), path(text=b"\xff")),
        "finished-path-in-no-digest": with_path_behind_digest(),
        "query-source-in-version-5": string(hello(versions=VERSIONS, source="shop"))
        + welcome(5, INSTANCE),
    }
    return {
        **{f"{name}.requests": data for name, data in requests.items()},
        **{f"{name}.session": data for name, data in sessions.items()},
        **{f"{name}.exchange": data for name, data in exchanges.items()},
    }
