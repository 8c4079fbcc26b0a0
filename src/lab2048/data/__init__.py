"""Games, moves and labels as files."""
