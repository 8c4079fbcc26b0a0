"""Past one machine: the work of solving, evaluating and self-play as tasks and actors of Ray."""
