"""The same rules as kernels: packed boards, batches of boards, and how kernels are compiled."""
