"""The views, each in one file: its class, its widget, and the function of `ll.widgets` that makes it."""
