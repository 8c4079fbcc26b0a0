"""Players that learn."""
