"""What a player is, heuristics, one file per search method, and the registry of all players."""
