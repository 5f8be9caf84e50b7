import pytest

from tests._distributed.common import Ranks


@pytest.fixture(scope="module")
def ranks():
    both = Ranks()
    yield both
    both.stop()
