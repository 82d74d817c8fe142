"""`python -m flashlore` is the command `flashlore`."""

from flashlore._command import main

main()
