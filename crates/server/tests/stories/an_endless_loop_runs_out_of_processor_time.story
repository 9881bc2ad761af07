limit    cpu 100
program  for (;;) {}

=== journal
1 started
2 prepared
3 limit reached: cpu
4 finished: failed (Timeout): The program used more than 100 ms of processor time.
