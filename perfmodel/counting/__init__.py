"""What a kernel does, as exact symbolic counts of its sizes."""
