"""A fuzzer with a clock: readers of outside text, odd shapes, and how time and memory grow with them."""
