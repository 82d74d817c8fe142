"""The core, as Rust offers it. Users find it behind the names of `flashlore`."""

__version__: str

def command(arguments: list[str]) -> int:
    """Carries out a command line, whose first argument is the program's name, and gives the exit status."""
