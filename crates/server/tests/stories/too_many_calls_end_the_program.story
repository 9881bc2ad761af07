tool?    file.read -> 1
limit    calls 3
program  for (;;) await tools.file.read({})

=== journal
1 started
2 prepared
3 call 1 made: file.read {}
4 call 1 dispatched, attempt 1
5 call 1 returned 1
6 call 2 made: file.read {}
7 call 2 dispatched, attempt 1
8 call 2 returned 1
9 call 3 made: file.read {}
10 call 3 dispatched, attempt 1
11 call 3 returned 1
12 limit reached: calls
13 finished: failed (LimitExceeded): The program made more than 3 tool calls.

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"Error: The program made more than 10000 tool calls.","structured":{"status":"error","error":"The program made more than 10000 tool calls.","logs":[]},"isError":true}
