"""The logs of partitions: Fetch, Produce, offsets, leader epochs, open transactions, and internal topics."""
