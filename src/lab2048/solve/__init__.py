"""Small boards, solved exactly: every reachable state, its value, and what follows from them."""
