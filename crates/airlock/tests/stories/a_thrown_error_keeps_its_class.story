program  throw new RangeError("out of cheese")

=== journal
1 started
2 finished: failed (Internal): The program crashed its sandbox (signal 6).
