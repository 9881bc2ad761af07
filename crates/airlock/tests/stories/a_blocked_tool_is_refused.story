policy   mail.*  block
tool     mail.send -> "sent"
program  return await tools.mail.send({ to: "ann" })

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"to":"ann"}
4 call 1 failed (Refused): Tool "mail.send" is blocked by policy mail.*.
5 finished: failed (Refused): Tool "mail.send" is blocked by policy mail.*.

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"Error: Error: Tool \"mail.send\" is blocked by policy mail.*.","structured":{"status":"error","error":"Error: Tool \"mail.send\" is blocked by policy mail.*.","logs":[]},"isError":true}
