program  await new Promise(() => {})

=== journal
1 started
2 prepared
3 finished: failed (Stuck): the program waits for a promise that nothing can settle: no tool call and no timer is outstanding

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"Error: the program waits for a promise that nothing can settle: no tool call and no timer is outstanding","structured":{"status":"error","error":"the program waits for a promise that nothing can settle: no tool call and no timer is outstanding","logs":[]},"isError":true}
