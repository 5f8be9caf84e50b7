"""Free memory, and what fits into it."""

import psutil
import pytest
import torch

from skcontrast._runtime import _memory
from skcontrast._runtime._memory import MemoryLimit, check_memory, free_bytes

CPU = torch.device("cpu")


def test_free_memory_is_a_part_of_all_memory():
    assert 0 < free_bytes(CPU) <= psutil.virtual_memory().total


def test_a_control_group_limits_both(monkeypatch):
    monkeypatch.setattr(_memory, "memory_limit", lambda: MemoryLimit(4000, 3000))
    assert free_bytes(CPU) == 3000
    check_memory(1000, CPU, "The 'queue_size' parameter of MoCo")
    with pytest.raises(ValueError, match="4e-06 GB: choose fewer"):
        check_memory(1001, CPU, "The 'queue_size' parameter of MoCo")


def test_a_limit_beyond_the_machine_changes_nothing(monkeypatch):
    total = psutil.virtual_memory().total
    monkeypatch.setattr(_memory, "memory_limit", lambda: MemoryLimit(2 * total, 2 * total))
    check_memory(total // 4, CPU, "The 'queue_size' parameter of MoCo")
    assert free_bytes(CPU) <= total


def test_what_takes_more_than_there_is_is_refused_by_name_with_both_sizes():
    total = int(_memory._bytes_of(CPU))
    check_memory(total // 4, CPU, "The 'queue_size' parameter of MoCo")
    with pytest.raises(ValueError, match=r"'queue_size' parameter of MoCo needs .* GB on cpu, wh"):
        check_memory(total // 4 + 1, CPU, "The 'queue_size' parameter of MoCo")
