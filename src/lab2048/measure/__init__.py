"""Games of players, figures with intervals, positions, and reviews."""
