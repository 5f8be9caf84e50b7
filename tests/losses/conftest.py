"""Every loss once."""

import pytest
from sklearn.base import clone

from tests.common import LOSSES


@pytest.fixture(params=LOSSES, ids=repr)
def loss(request):
    return clone(request.param)
