from adbc_drivers_validation.tests.statement import TestStatement, generate_tests  # noqa: F401
from conftest import QUIRKS


def pytest_generate_tests(metafunc):
    generate_tests(QUIRKS, metafunc)
