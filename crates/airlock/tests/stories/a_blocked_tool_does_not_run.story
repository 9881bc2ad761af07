policy   mail.*  block
tool     mail.send -> "sent"
program  return await tools.mail.send({ to: "ann" })

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"to":"ann"}
4 call 1 failed (ToolNotFound): There is no tool "mail.send".
5 finished: failed (ToolNotFound): There is no tool "mail.send".

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"Error: Error: There is no tool \"mail.send\".","structured":{"status":"error","error":"Error: There is no tool \"mail.send\".","logs":[]},"isError":true}
