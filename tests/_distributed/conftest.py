"""Two processes for all tests of this folder."""

import pytest

from tests._distributed.common import Ranks


@pytest.fixture(scope="package")
def ranks():
    both = Ranks()
    yield both
    both.stop()
