program  throw new RangeError("out of cheese")

=== journal
1 started
2 prepared
3 finished: failed (Runtime): out of cheese

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"Error: RangeError: out of cheese\n    at <anonymous> (program.js:1:11)","structured":{"status":"error","error":"RangeError: out of cheese\n    at <anonymous> (program.js:1:11)","logs":[]},"isError":true}
