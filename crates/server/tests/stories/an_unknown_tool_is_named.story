tool?    file.read -> "text"
program  return await tools.file.raed({})

=== journal
1 started
2 prepared
3 call 1 made: file.raed {}
4 call 1 failed (ToolNotFound): Tool not found: file.raed. Did you mean file.read?
5 finished: failed (ToolNotFound): Tool not found: file.raed. Did you mean file.read?

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"Error: Error: Tool not found: file.raed. Did you mean file.read?\n    at <anonymous> (program.js:1:25)","structured":{"status":"error","error":"Error: Tool not found: file.raed. Did you mean file.read?\n    at <anonymous> (program.js:1:25)","logs":[]},"isError":true}
