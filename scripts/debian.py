"""Install a package of Debian or Ubuntu, where this runs as root on one: in containers and on CI machines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys


def install(*packages: str) -> str:
    """What apt-get said while it installed `packages`; empty, and nothing done, where it cannot be used."""
    if shutil.which("apt-get") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return ""
    return run("apt-get", "update", "-q") + run("apt-get", "install", "-y", "-q", "--no-install-recommends", *packages)


def run(*command: str) -> str:
    """What `command` printed; says on stderr that it runs, and leaves judging the outcome to the caller."""
    print("Installing:", " ".join(command), file=sys.stderr, flush=True)
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.stdout
