policy   mail.*  block
tool     mail.send -> "sent"
program  return await tools.mail.send({ to: "ann" })

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"to":"ann"}
4 call 1 failed (Refused): Tool blocked by policy: mail.send
5 finished: failed (Refused): Tool blocked by policy: mail.send

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"Error: Error: Tool blocked by policy: mail.send\n    at <anonymous> (program.js:1:25)","structured":{"status":"error","error":"Error: Tool blocked by policy: mail.send\n    at <anonymous> (program.js:1:25)","logs":[]},"isError":true}
