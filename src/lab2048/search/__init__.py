"""Players that look ahead, a file a method."""
