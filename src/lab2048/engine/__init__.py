"""The rules as kernels: packed boards, batches of boards, and the compilation of kernels."""
