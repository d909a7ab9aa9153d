"""A real JupyterLab and a real Chromium, for the browser tests, the screenshots and `make lab-check`.

- `harness.chromium` finds a browser, or has one installed.
- `harness.server` starts JupyterLab on loopback, apart from the user's own settings.
- `harness.page` drives a notebook in it: run, wait, switch theme, take a picture.
"""
