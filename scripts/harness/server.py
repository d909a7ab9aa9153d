"""A real JupyterLab server on loopback, with settings, kernels' history and caches of its own.

Needs the standard library only, so that it can check an environment that has no test tools. The server has no token:
it listens on 127.0.0.1, serves one temporary folder, and lives as long as a test run.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
LABEXTENSIONS = Path(__file__).parents[2] / "widgets" / "limelight_widgets" / "labextensions"
"""An installed package has them in the environment's `share/jupyter`; the sources need not be installed."""
START_SECONDS = 300.0
STOP_SECONDS = 15.0
ANSWER_SECONDS = 300.0
"""A busy machine is late; a server that has ended refuses at once."""
SETTINGS = {"apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False}}
"""JupyterLab's settings where they differ from its defaults: no question about news over the pictures."""


class ServerError(RuntimeError):
    """JupyterLab did not start or did not answer; the message ends with the last lines of its log."""


@dataclass(frozen=True)
class LabServer:
    """A running server: its address, the folder it serves, and its log."""

    url: str
    root: Path
    log: Path
    _spare: list[threading.Thread] = field(default_factory=list)
    _spare_ids: list[str] = field(default_factory=list)

    def get(self, path: str) -> str:
        """The body that the server answers to `GET path`.

        Raises:
            urllib.error.HTTPError: if the status is not a success.
        """
        with urllib.request.urlopen(self.url + path, timeout=ANSWER_SECONDS) as answer:
            return str(answer.read().decode())

    def get_json(self, path: str) -> Any:
        """The JSON value that the server answers to `GET path`, say `/api/status`."""
        return json.loads(self.get(path))

    def post_json(self, path: str, content: dict[str, Any]) -> Any:
        """The JSON value that the server answers to `POST path`."""
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(content).encode(), headers)
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return json.loads(answer.read())

    def prepare_kernel(self) -> None:
        """Starts a kernel for a notebook that is opened later, and does not wait for it."""
        if not self._spare:
            thread = threading.Thread(target=self._start_spare, daemon=True)
            self._spare.append(thread)
            thread.start()

    def _start_spare(self) -> None:
        with contextlib.suppress(OSError):  # then there is none, and the notebook starts its own
            self._spare_ids.append(self.post_json("/api/kernels", {"name": "python3"})["id"])

    def give_kernel(self, name: str) -> None:
        """Has the notebook `name`, which is not open yet, use the kernel that was prepared, if there is one."""
        while self._spare:
            self._spare.pop().join()
        if self._spare_ids:
            kernel = {"id": self._spare_ids.pop(), "name": "python3"}
            self.post_json("/api/sessions", {"path": name, "name": name, "type": "notebook", "kernel": kernel})

    def end_kernels(self) -> None:
        """Ends the kernels of the notebooks that are open now, and does not wait: each takes a second."""
        ended = [session["id"] for session in self.get_json("/api/sessions")]
        threading.Thread(target=self._end, args=(ended,), daemon=True).start()

    def _end(self, sessions: list[str]) -> None:
        for session in sessions:
            request = urllib.request.Request(f"{self.url}/api/sessions/{session}", method="DELETE")
            with contextlib.suppress(OSError):  # the server has ended, and its kernels with it
                urllib.request.urlopen(request, timeout=30).close()


@contextlib.contextmanager
def running(root: Path, state: Path, log: Path, startup: str = "") -> Iterator[LabServer]:
    """JupyterLab over the folder `root`; its settings and runtime files go to `state`, its output to `log`.

    `startup` is what each kernel runs first, as a startup file of IPython.

    Stops the server and its kernels on the way out, also after an error.

    Raises:
        ServerError: if it does not answer within START_SECONDS.
    """
    port = _free_port()
    log.parent.mkdir(parents=True, exist_ok=True)
    if startup:
        folder = state / "ipython" / "profile_default" / "startup"
        folder.mkdir(parents=True)
        (folder / "first.py").write_text(startup)
    with log.open("wb") as output:
        process = subprocess.Popen(
            _command(root, port), env=_environment(state), stdout=output, stderr=subprocess.STDOUT, cwd=root
        )
        server = LabServer(f"http://{HOST}:{port}", root, log)
        try:
            _wait_until_it_answers(server, process)
            yield server
        finally:
            _stop(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _command(root: Path, port: int) -> list[str]:
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        f"--ip={HOST}",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={root}",
        "--IdentityProvider.token=",
        "--ServerApp.password=",
        "--ServerApp.disable_check_xsrf=True",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        "--LabApp.expose_app_in_browser=True",
        f"--LabServerApp.extra_labextensions_path={LABEXTENSIONS}",
    ]


def _environment(state: Path) -> dict[str, str]:
    """The user's environment, with every place where Jupyter and IPython keep state moved under `state`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "IPYTHON"))}
    moved = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "IPYTHONDIR": "ipython",
    }
    for setting, values in SETTINGS.items():
        path = state / "config" / "lab" / "user-settings" / "@jupyterlab" / f"{setting}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    for name, folder in moved.items():
        (state / folder).mkdir(parents=True, exist_ok=True)
        kept[name] = str(state / folder)
    return kept


def _wait_until_it_answers(server: LabServer, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ServerError(f"JupyterLab stopped with status {process.returncode}.\n{_tail(server.log)}")
        try:
            server.get_json("/api/status")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
        else:
            return
    raise ServerError(f"JupyterLab did not answer within {START_SECONDS:.0f} s.\n{_tail(server.log)}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask twice, as Ctrl-C would (the server then ends its kernels), and insist after a while."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(log: Path, lines: int = 30) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
