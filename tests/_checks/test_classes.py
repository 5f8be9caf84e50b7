"""Classes of users: names that resemble those of their base classes."""

import pytest

from skcontrast.augmentation import Augmentation
from skcontrast.encoders import Encoder
from skcontrast.frameworks import Framework
from skcontrast.kinds import Kind
from skcontrast.losses import Loss
from skcontrast.similarity import Similarity


@pytest.mark.parametrize(
    "base, name, meant",
    [
        (Loss, "hardnes", "hardness"),
        (Similarity, "embeds", "embed"),
        (Framework, "contrasts", "contrast"),
        (Kind, "to_tensors", "to_tensor"),
        (Encoder, "builds", "build"),
        (Augmentation, "augmented", "augment"),
    ],
)
def test_a_misspelled_method_is_refused_in_every_base_class(base, name, meant):
    def method(self):
        """Do nothing."""

    with pytest.raises(TypeError, match=rf"Own\.{name} would never be used: did you mean {meant}"):
        type("Own", (base,), {name: method})
    with pytest.raises(TypeError, match=r"Own\.forward would never be called"):
        type("Own", (base,), {"forward": method})
    assert type("Own", (base,), {"a_helper": method, f"_{name}": method})
