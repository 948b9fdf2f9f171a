"""What tells one process from every other that ever had its number: the boot, and the kernel's start ticks.

On systems without /proc the boot is empty and the ticks are 0: nobody may signal a process by them.
"""


def boot_id() -> str:
    """Return what tells this boot of the machine from all others; empty where unknown."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def start_ticks(pid: int | str = "self") -> int:
    """Return when a process began, in clock ticks since boot; 0 where unknown, or where it has gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # proc_pid_stat(5): the command may hold spaces and parentheses; starttime is field 22.
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
