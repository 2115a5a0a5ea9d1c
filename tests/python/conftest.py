# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share. They run with the environment variables TENON_LIBRARY and PYTHONPATH of tests/python/CMakeLists.txt."""
import gc

import pytest

import tenon


@pytest.fixture(autouse=True)
def no_leaks():
    """Each test gives up all objects that it made, and those of the default context."""
    gc.collect()
    before = tenon.live_objects()
    yield
    tenon.default_context().close()
    gc.collect()
    assert tenon.live_objects() == before
