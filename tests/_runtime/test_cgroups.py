"""The limits of control groups, read from folders that look like those of the kernel."""

import pytest

from skcontrast._runtime._memory import MemoryLimit, memory_limit

GB = 10**9
V1_NONE = "9223372036854771712"


def system(root, own, files):
    """Write /proc/self/cgroup and files below /sys/fs/cgroup."""
    for path, text in {"proc/self/cgroup": own, **files}.items():
        name = root / (path if path.startswith("proc") else f"sys/fs/cgroup/{path}")
        name.parent.mkdir(parents=True, exist_ok=True)
        name.write_text(f"{text}\n")
    return root


def v2(folder="", limit="max", used=0, cached=(0, 0)):
    inactive, active = cached
    files = {
        "memory.max": limit,
        "memory.current": used,
        "memory.stat": f"anon 5\ninactive_file {inactive}\nactive_file {active}",
    }
    return {f"{folder}{name}": text for name, text in files.items()}


def v1(folder="", limit=V1_NONE, used=0, cached=0):
    memory = f"memory/{folder}"
    return {
        f"{memory}memory.limit_in_bytes": limit,
        f"{memory}memory.usage_in_bytes": used,
        f"{memory}memory.stat": f"cache 1\ntotal_inactive_file {cached}\ntotal_active_file 0",
    }


V1_OWN = "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc"
WITHOUT_LIMIT = {
    "no groups": ("", {}),
    "version 2": ("0::/", v2()),
    "version 2, the root, which has no files": ("0::/", {"cgroup.procs": 1}),
    "version 1": (V1_OWN, v1("docker/abc/")),
    "not readable": ("0::/a", {"a/memory.max": "what?"}),
}


@pytest.mark.parametrize("own, files", WITHOUT_LIMIT.values(), ids=WITHOUT_LIMIT)
def test_where_there_is_no_limit_there_is_none(tmp_path, own, files):
    root = system(tmp_path, own, files)
    assert memory_limit(root) is None


def test_a_missing_proc_is_no_limit(tmp_path):
    assert memory_limit(tmp_path) is None


WITH_LIMIT = {
    "version 2": ("0::/a/b", v2("a/b/", 4 * GB, 3 * GB, (GB, GB))),
    "version 2, of a parent": (
        "0::/a/b",
        v2("a/b/") | v2("a/", 4 * GB, 3 * GB, (GB, GB)),
    ),
    "version 2, a container that sees only its own": (
        "0::/../../docker/abc",
        v2("", 4 * GB, 3 * GB, (2 * GB, 0)),
    ),
    "version 1": (V1_OWN, v1("docker/abc/", 4 * GB, 3 * GB, 2 * GB)),
    "version 1, a path of the host": (V1_OWN, v1("", 4 * GB, 3 * GB, 2 * GB)),
    "both versions": (
        f"{V1_OWN}\n0::/",
        v1("docker/abc/", 4 * GB, 3 * GB, 2 * GB) | {"unified/cgroup.procs": 1},
    ),
}


@pytest.mark.parametrize("own, files", WITH_LIMIT.values(), ids=WITH_LIMIT)
def test_the_tightest_limit_counts_and_what_was_read_from_files_is_free(tmp_path, own, files):
    root = system(tmp_path, own, files)
    assert memory_limit(root) == MemoryLimit(4 * GB, 3 * GB)


def test_a_group_over_its_limit_has_nothing_free(tmp_path):
    root = system(tmp_path, "0::/", v2(limit=GB, used=2 * GB))
    assert memory_limit(root) == MemoryLimit(GB, 0)
