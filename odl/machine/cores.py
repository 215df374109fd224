"""How many cores this process may use, which in a container are fewer than the machine has."""

import math
import os
from pathlib import Path

SYSTEM, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def cores() -> int:
    """Of the cores that the process may run on, as many as its cgroups grant it time for; at least one."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min([allowed, *quotas(SYSTEM, OWN)])))


def quotas(system: Path, own: Path) -> list[float]:
    """Cores that each cgroup above this process grants; those that set no limit are left out.

    `own` names the groups, a line `number:controllers:path` each, of version 2 without controllers. In a container
    `system` itself is the group, whatever the path says.
    """
    found = []
    for line in own.read_text(encoding="ascii", errors="replace").splitlines() if own.exists() else ():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = system / "cpu" if controllers else system
        inside = top / path.lstrip("/")
        for group in (inside, *inside.parents)[: len(inside.parts) - len(top.parts) + 1]:
            found += quota(group)
    return found


def quota(group: Path) -> list[float]:
    """Time over period: of version 2 both in one file, of version 1 in two."""
    files = [group / name for name in ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")]
    numbers = " ".join(file.read_text(encoding="ascii") for file in files if file.exists()).split()
    limited = len(numbers) == 2 and numbers[0] not in ("max", "-1")
    return [int(numbers[0]) / int(numbers[1])] if limited else []
