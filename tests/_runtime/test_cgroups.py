"""The limit of a container, read from a folder that looks like that of the kernel."""

import pytest

from skcontrast._runtime._memory import MemoryLimit, memory_limit

GB = 10**9
V1_NONE = "9223372036854771712"


def system(root, files):
    """Write the files of a control group."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{text}\n")
    return root


def v2(limit="max", used=0, cached=(0, 0)):
    inactive, active = cached
    return {
        "memory.max": limit,
        "memory.current": used,
        "memory.stat": f"anon 5\ninactive_file {inactive}\nactive_file {active}",
    }


def v1(limit=V1_NONE, used=0, cached=0):
    return {
        "memory/memory.limit_in_bytes": limit,
        "memory/memory.usage_in_bytes": used,
        "memory/memory.stat": f"cache 1\ntotal_inactive_file {cached}\ntotal_active_file 0",
    }


WITHOUT_LIMIT = {
    "no groups": {},
    "version 2": v2(),
    "version 2, the root, which has no files": {"cgroup.procs": 1},
    "not readable": {"memory.max": "what?"},
}


@pytest.mark.parametrize("files", WITHOUT_LIMIT.values(), ids=WITHOUT_LIMIT)
def test_where_there_is_no_limit_there_is_none(tmp_path, files):
    assert memory_limit(system(tmp_path, files)) is None


def test_no_limit_of_version_1_is_more_than_any_memory(tmp_path):
    assert memory_limit(system(tmp_path, v1())).free > 2**60


WITH_LIMIT = {
    "version 2": v2(4 * GB, 3 * GB, (GB, GB)),
    "version 1": v1(4 * GB, 3 * GB, 2 * GB),
    "both versions": v1(4 * GB, 3 * GB, 2 * GB) | {"unified/cgroup.procs": 1},
}


@pytest.mark.parametrize("files", WITH_LIMIT.values(), ids=WITH_LIMIT)
def test_what_was_read_from_files_is_free(tmp_path, files):
    assert memory_limit(system(tmp_path, files)) == MemoryLimit(4 * GB, 3 * GB)


def test_a_container_over_its_limit_has_nothing_free(tmp_path):
    root = system(tmp_path, v2(limit=GB, used=2 * GB))
    assert memory_limit(root) == MemoryLimit(GB, 0)
