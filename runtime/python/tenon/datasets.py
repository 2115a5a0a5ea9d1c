# SPDX-License-Identifier: Apache-2.0
"""Data sets that the library reads: tenon.datasets.fashion_mnist("folder").train goes into Model.fit."""
from typing import Any, Optional

from . import _api
from ._data import Data
from ._library import PathLike, definition_of, lib, object_of

__all__ = ["Dataset", "cifar10", "csv", "digits", "fashion_mnist", "images", "load", "mnist", "npz", "text"]


class Dataset:
    """A data set with its parts, which are read when they are asked for."""

    def __init__(self, source: str, directory: Optional[PathLike] = None, **keys: Any):
        self._definition = {"source": source, **({} if directory is None else {"directory": directory}), **keys}

    def _part(self, part: int) -> Data:
        return Data(object_of(lib.tenon_data_load, definition_of(self._definition), part))

    @property
    def train(self) -> Data:
        """The training samples. Errors: files that are missing or damaged."""
        return self._part(_api.DATA_TRAIN)

    @property
    def test(self) -> Data:
        """The test samples."""
        return self._part(_api.DATA_TEST)

    @property
    def validation(self) -> Data:
        """The validation samples, of a data set with validation_split. Errors: there are none."""
        return self._part(_api.DATA_VALIDATION)

    def __repr__(self) -> str:
        return f"<tenon.datasets.Dataset {self._definition}>"


def load(source: str, directory: Optional[PathLike] = None, **keys: Any) -> Dataset:
    """Any source of the block `data` of a train.yaml, with its keys (docs/yaml.md): load("idx", "folder", train_count=1000)."""
    return Dataset(source, directory, **keys)


def mnist(directory: PathLike, **keys: Any) -> Dataset:
    """MNIST from its IDX files, plain or gz: float32 (28, 28) in [0, 1], labels 0 to 9."""
    return Dataset("mnist", directory, **keys)


def fashion_mnist(directory: PathLike, **keys: Any) -> Dataset:
    """Fashion-MNIST from its IDX files, plain or gz: float32 (28, 28) in [0, 1], labels 0 to 9."""
    return Dataset("fashion_mnist", directory, **keys)


def cifar10(directory: PathLike, **keys: Any) -> Dataset:
    """CIFAR-10 from its binary files: float32 (3, 32, 32) in [0, 1], labels 0 to 9."""
    return Dataset("cifar10", directory, **keys)


def digits(**keys: Any) -> Dataset:
    """Generated images (28, 28) of ten classes."""
    return Dataset("digits", **keys)


def npz(path: PathLike, **keys: Any) -> Dataset:
    """An archive of NumPy with x_train, y_train, x_test, y_test, or x and y."""
    return Dataset("npz", path, **keys)


def images(directory: PathLike, **keys: Any) -> Dataset:
    """Folders train/CLASS/ and test/CLASS/, or CLASS/, of images."""
    return Dataset("images", directory, **keys)


def csv(path: PathLike, **keys: Any) -> Dataset:
    """A table of numbers, or a folder with train.csv and test.csv."""
    return Dataset("csv", path, **keys)


def text(path: PathLike, **keys: Any) -> Dataset:
    """A text in UTF-8 as characters, or a folder with train.txt and test.txt."""
    return Dataset("text", path, **keys)
