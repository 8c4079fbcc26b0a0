"""How fast lab2048 is on this machine."""
