"""Free memory, and what fits into it."""

import psutil
import pytest
import torch

from skcontrast._runtime._memory import check_memory, free_bytes

CPU = torch.device("cpu")


def test_free_memory_is_a_part_of_all_memory():
    assert 0 < free_bytes(CPU) <= psutil.virtual_memory().total


def test_what_takes_more_than_there_is_is_refused_by_name_with_both_sizes():
    total = psutil.virtual_memory().total
    check_memory(total // 4, CPU, "The 'queue_size' parameter of MoCo")
    with pytest.raises(ValueError, match=r"'queue_size' parameter of MoCo needs .* GB on cpu, wh"):
        check_memory(total // 4 + 1, CPU, "The 'queue_size' parameter of MoCo")
