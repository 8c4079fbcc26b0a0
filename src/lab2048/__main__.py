"""`python -m lab2048` is the command `lab2048`."""

from lab2048.cli.app import main

main()
