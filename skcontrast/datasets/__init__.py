"""Public data sets in the manner of ``sklearn.datasets``, and forms of X for your own data."""

from .._data._parts import Parts
from ._cifar import fetch_cifar10, fetch_cifar100
from ._image_folder import ImageFolder
from ._mnist import fetch_fashion_mnist, fetch_mnist
from ._stl10 import fetch_stl10
from ._tudataset import fetch_tudataset

__all__ = [
    "ImageFolder",
    "Parts",
    "fetch_cifar10",
    "fetch_cifar100",
    "fetch_fashion_mnist",
    "fetch_mnist",
    "fetch_stl10",
    "fetch_tudataset",
]
