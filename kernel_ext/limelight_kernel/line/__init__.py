"""The line of a magic: its arguments and flags, the options that they make, and completion while it is typed."""
