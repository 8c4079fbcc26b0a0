"""The web page: play, watch, analyse, review, and look at results."""
