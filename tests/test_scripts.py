"""The scripts behind the Makefile: they do what they say, and say what is wrong."""

from __future__ import annotations

import importlib
import subprocess
import sys
import urllib.error

import pytest

from harness import chromium, server

environment = importlib.import_module("environment")
javascript = importlib.import_module("javascript")
lab = importlib.import_module("lab")
native = importlib.import_module("native")
packages = importlib.import_module("packages")


@pytest.fixture
def bare(tmp_path):
    """A Python whose environments are without pip: to install that takes eight seconds, and set-up itself does it."""
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@" --without-pip\n')
    program.chmod(0o755)
    return str(program)


@pytest.mark.slow  # starts other Pythons
def test_an_environment_is_created_with_a_python_that_is_new_enough(monkeypatch, tmp_path, bare):
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    assert environment.candidates()[0] == sys.executable
    monkeypatch.setattr(environment, "candidates", lambda: [str(tmp_path / "none"), str(old), bare])
    environment.create(tmp_path / "venv")
    assert environment.is_new_enough(str(environment.python_of(tmp_path / "venv")))


@pytest.mark.slow  # starts each Python of the machine
def test_without_a_new_enough_python_it_says_what_was_tried_and_what_to_write(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "OLDEST", (99, 0))
    with pytest.raises(SystemExit, match=r"No Python 99\.0 or newer(.|\n)*PYTHON="):
        environment.create(tmp_path / "venv")


def test_where_venv_does_not_work_it_names_the_package(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "candidates", lambda: [sys.executable])
    monkeypatch.setattr(environment.debian, "install", lambda *packages: "")
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit, match="python3-venv"):
        environment.create(tmp_path / "file" / "venv")


@pytest.mark.slow  # starts other Pythons
def test_where_venv_does_not_work_debians_package_is_tried(monkeypatch, tmp_path, bare):
    def make_it_work(*packages):
        installed.extend(packages)
        (tmp_path / "file").unlink()
        return "Setting up python3-venv"

    installed = []
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(environment, "candidates", lambda: [bare])
    monkeypatch.setattr(environment.debian, "install", make_it_work)
    environment.create(tmp_path / "file" / "venv")
    assert installed == ["python3-venv"]


class Ran:
    """Stands for `subprocess.run`: what was run, of which some fails."""

    def __init__(self, fails=lambda command: False, says=""):
        self.commands, self.fails, self.says = [], fails, says

    def __call__(self, command, **options):
        self.commands.append((" ".join(command[1:]), options.get("env")))
        return subprocess.CompletedProcess(command, int(self.fails(command)), self.says, "trying\nno network\n")


def test_uv_installs_what_pip_would_have_by_its_configuration(monkeypatch, tmp_path):
    files = "global.cert='/c.pem'\nglobal.index-url='https://a'\nglobal.constraint='x y'\nlist.format='json'\n"
    ran = Ran(says=files + ":env:.index-url='https://b/simple'\n")
    monkeypatch.setattr(packages.subprocess, "run", ran)
    assert packages.install(tmp_path / "python", "--editable", ".[test]") == 0
    command, given = ran.commands[-1]
    assert command.startswith("-m uv pip install")
    assert command.endswith("--index-url https://b/simple --constraint x --constraint y --editable .[test]")
    assert given["SSL_CERT_FILE"] == "/c.pem"


@pytest.mark.parametrize(("says", "fails"), [("global.no-binary=':all:'\n", "nothing"), ("", "uv"), ("", "--quiet")])
def test_where_uv_does_not_do_pip_installs(monkeypatch, tmp_path, says, fails):
    """A setting that uv does not know; no uv; a uv that cannot install it."""
    ran = Ran(lambda command: fails in command, says)
    monkeypatch.setattr(packages.subprocess, "run", ran)
    assert packages.install(tmp_path / "python", "a") == 0
    assert ran.commands[-1][0] == "-m pip --disable-pip-version-check install -qq --no-compile a"


def test_without_uv_pip_is_updated_all_the_same(monkeypatch, tmp_path):
    ran = Ran(lambda command: "uv" in command)
    monkeypatch.setattr(packages.subprocess, "run", ran)
    packages.update_installers(tmp_path / "python")
    assert [command.partition("--upgrade ")[2] for command, _ in ran.commands] == ["pip uv", "pip"]


def test_without_a_compiler_it_says_in_a_line_what_is_missing(monkeypatch, tmp_path):
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr="warning\nmeson.build: ERROR: no Python.h\n× no\n")
    monkeypatch.setattr(native.subprocess, "run", lambda *args, **options: failed)
    monkeypatch.delenv("CC", raising=False)
    assert native.install(tmp_path / "python") == "meson.build: ERROR: no Python.h"
    monkeypatch.setattr(native, "COMPILERS", ("no-such-compiler",))
    assert native.install(tmp_path / "python").startswith("there is no C compiler")


def test_a_build_that_never_ends_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(native, "LONGEST", 0.1)
    never = tmp_path / "python"
    never.write_text("#!/bin/sh\nexec sleep 60\n")
    never.chmod(0o755)
    assert native.build(never, tmp_path) == "pip wheel took longer than 0.1 s"


def test_only_root_on_debian_uses_apt(monkeypatch):
    ran = []
    monkeypatch.setattr(environment.debian, "run", lambda *command: ran.append(command) or "done")
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/apt-get")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert environment.debian.install("chromium") == ""
    assert ran == []
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert environment.debian.install("chromium") == "donedone"
    assert [command[:2] for command in ran] == [("apt-get", "update"), ("apt-get", "install")]


def test_without_a_browser_debians_is_tried_then_playwrights(monkeypatch):
    tried = []
    monkeypatch.setattr(chromium, "find", lambda: None)
    monkeypatch.setattr(chromium.debian, "install", lambda *packages: tried.append(packages[0]) or "")
    monkeypatch.setattr(chromium.debian, "run", lambda *command: tried.append(command[2]) or "no network")
    with pytest.raises(chromium.NoBrowserError, match=r"LIMELIGHT_CHROMIUM(.|\n)*no network"):
        chromium.ensure()
    assert tried == ["chromium", "playwright"]


def test_the_browser_named_by_the_environment_wins(monkeypatch, tmp_path):
    named = tmp_path / "my-chromium"
    named.write_text("")
    monkeypatch.setenv(chromium.VARIABLE, str(named))
    assert chromium.find() == named


def test_a_named_browser_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setenv(chromium.VARIABLE, "/nowhere/chromium")
    with pytest.raises(
        chromium.NoBrowserError, match="LIMELIGHT_CHROMIUM=/nowhere/chromium, but there is no such file"
    ):
        chromium.ensure()


def test_a_server_that_does_not_start_shows_its_log(monkeypatch, tmp_path):
    monkeypatch.setattr(server, "_command", lambda root, port: [sys.executable, "-c", "print('port on fire'); exit(3)"])
    with (
        pytest.raises(server.ServerError, match=r"stopped with status 3(.|\n)*port on fire"),
        server.running(tmp_path, tmp_path / "state", tmp_path / "log"),
    ):
        pytest.fail("it must not get here")


@pytest.mark.slow  # starts a server
def test_a_server_is_stopped_after_an_error(tmp_path):
    def fail_while_running():
        with server.running(tmp_path, tmp_path / "state", tmp_path / "log") as running:
            seen.append(running)
            assert running.get_json("/api/status")["kernels"] == 0
            raise ZeroDivisionError

    seen = []
    with pytest.raises(ZeroDivisionError):
        fail_while_running()
    with pytest.raises(urllib.error.URLError, match="refused"):
        seen[0].get("/api/status")


def test_lab_check_names_what_is_missing(monkeypatch):
    class Bare:
        def get(self, path):
            return '"federated_extensions": [{"name": "anywidget"}]'

        def get_json(self, path):
            return {"type": "file", "kernelspecs": {}}

    monkeypatch.setattr(lab, "LESSON", "README.md")
    assert lab.problems(Bare()) == [
        "JupyterLab does not take README.md for a notebook",
        "There is no kernel python3: is ipykernel installed?",
        "JupyterLab's extension @jupyter-widgets/jupyterlab-manager is not installed",
    ]


@pytest.mark.parametrize(("task", "status"), [("test", 0), ("build", 1)])
def test_without_node_the_tests_are_skipped_aloud_and_a_build_fails(task, status):
    program = [sys.executable, javascript.__file__, task]
    done = subprocess.run(program, env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert "there is no Node on the path" in done.stdout + done.stderr


def test_a_page_that_the_browser_leaves_early_is_no_error_of_the_check_of_the_documentation(monkeypatch):
    check = importlib.import_module("documentation_check")

    def left(*files):
        raise BrokenPipeError

    monkeypatch.setattr("http.server.SimpleHTTPRequestHandler.copyfile", left)
    handler = object.__new__(check._Silent)
    handler.copyfile(None, None)
