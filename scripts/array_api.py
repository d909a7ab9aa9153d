"""Let the public test suite of the Python Array API judge limelight, and jax.numpy beside it in the same run.

    python scripts/array_api.py SUITE [--examples N] [--venv DIR]

SUITE is a checkout of https://github.com/data-apis/array-api-tests with its submodule; it is on no package registry and
no part of this repository. The first run makes an environment of its own, `.venv-array-api`, with the project, what the
suite requires, and jax; where jax cannot be had the comparison is left out and said to be. Tests that are expected to
fail stand in tests/array_api/expected.txt, each with its reason; jax.numpy gets no such list. The logs are kept in
artefacts/. Fails when a test of limelight fails unexpectedly, or when jax.numpy passes more tests.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from environment import ROOT, create, is_new_enough, python_of

VERSION = "2024.12"
EXPECTED = ROOT / "tests" / "array_api" / "expected.txt"
ARTEFACTS = ROOT / "artefacts"
JAX = "jax>=0.6"

NO_SUITE = """{suite} is no complete checkout of the suite: {missing} is missing. Get it with
    git clone --recurse-submodules https://github.com/data-apis/array-api-tests
and run make array-api SUITE=array-api-tests"""


class Verdict(NamedTuple):
    """What the suite said of one library: ids of tests, by what became of them."""

    passed: list[str]
    failed: list[str]
    skipped: list[str]


def main() -> None:
    """Parse the command line, set up, run, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path)
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv-array-api")
    arguments = parser.parse_args()
    suite = arguments.suite.expanduser().resolve()
    for needed in ("array_api_tests", "requirements.txt", "array-api/spec"):
        if not (suite / needed).exists():
            sys.exit(NO_SUITE.format(suite=suite, missing=needed))
    has_jax = set_up(arguments.venv, suite)
    ours = judge("limelight", suite, arguments.venv, arguments.examples)
    theirs = judge("jax.numpy", suite, arguments.venv, arguments.examples) if has_jax else None
    sys.exit(report(ours, theirs))


def set_up(venv: Path, suite: Path) -> bool:
    """Make the environment if need be; whether it has jax."""
    python = str(python_of(venv))
    if not is_new_enough(python):
        create(venv)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
    print(f"Installing limelight and what the suite requires into {venv.name}", flush=True)
    subprocess.run([*pip, "--editable", str(ROOT), "-r", str(suite / "requirements.txt")], check=True)
    if can_import_jax(python):
        return True
    subprocess.run([*pip, JAX], check=False)
    return can_import_jax(python)


def can_import_jax(python: str) -> bool:
    """Whether jax works in the environment of `python`."""
    return subprocess.run([python, "-c", "import jax.numpy"], capture_output=True, check=False).returncode == 0


def judge(module: str, suite: Path, venv: Path, examples: int) -> Verdict:
    """Run the whole suite on one library. Both get the same seed, and neither a limit on the time of an example."""
    ARTEFACTS.mkdir(exist_ok=True)
    stem = ARTEFACTS / f"array-api-{module}"
    command = [str(python_of(venv)), "-m", "pytest", "array_api_tests", "-q", "-W", "ignore", "-p", "no:cacheprovider"]
    command += [f"--max-examples={examples}", "--disable-deadline", "--hypothesis-seed=0", f"--junitxml={stem}.xml"]
    command += [f"--xfails-file={EXPECTED if module == 'limelight' else os.devnull}"]
    environment = dict(os.environ, ARRAY_API_TESTS_MODULE=module, ARRAY_API_TESTS_VERSION=VERSION, JAX_ENABLE_X64="1")
    print(f"Running the suite on {module}, {examples} examples a test; log: {stem}.log", flush=True)
    with Path(f"{stem}.log").open("w", encoding="utf-8") as log:
        subprocess.run(command, cwd=suite, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False)
    if not Path(f"{stem}.xml").exists():
        sys.exit(f"the suite did not run on {module}: see {stem}.log")
    return read(Path(f"{stem}.xml"))


def read(results: Path) -> Verdict:
    """The verdict in a file of JUnit's format. Expected failures are among the skipped there."""
    verdict = Verdict([], [], [])
    for case in ElementTree.parse(results).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        kinds = {child.tag for child in case}
        found = verdict.failed if kinds & {"failure", "error"} else verdict.passed
        (verdict.skipped if "skipped" in kinds else found).append(name)
    return verdict


def report(ours: Verdict, theirs: Verdict | None) -> int:
    """Print the figures of both, and return the status to exit with."""
    expected = [line for line in EXPECTED.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    print(f"\nPython Array API {VERSION}\n{'':12}{'passed':>8}{'failed':>8}{'skipped, or expected to fail':>30}")
    for name, verdict in (("limelight", ours), ("jax.numpy", theirs)):
        if verdict is not None:
            print(f"{name:12}{len(verdict.passed):8}{len(verdict.failed):8}{len(verdict.skipped):30}")
    print(f"\nExpected to fail ({EXPECTED.relative_to(ROOT)} says why):", *expected, sep="\n    ")
    if ours.failed:
        print("\nFailed:", *ours.failed, sep="\n    ")
    met = not ours.failed
    if theirs is None:
        print("\njax is not installed and could not be: nothing to compare with.")
    else:
        met = met and len(ours.passed) >= len(theirs.passed)
        print(f"\nlimelight passes {len(ours.passed) - len(theirs.passed):+} tests compared with jax.numpy.")
    print("The bar is met." if met else "The bar is not met.")
    return 0 if met else 1


if __name__ == "__main__":
    main()
