program  throw new RangeError("out of cheese")

=== journal
1 started
2 prepared
3 finished: failed (Runtime): out of cheese
