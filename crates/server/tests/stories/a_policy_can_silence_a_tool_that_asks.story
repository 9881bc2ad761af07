policy   mail.send  approve
policy   mail.*  block
tool!    mail.send -> "sent"
tool     mail.drop -> "dropped"
program  const sent = await tools.mail.send({ to: "ann" });
         try { await tools.mail.drop({}) } catch (error) { return [sent, error.message] }

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"to":"ann"}
4 call 1 dispatched, attempt 1
5 call 1 returned "sent"
6 call 2 made: mail.drop {}
7 call 2 failed (Refused): Tool blocked by policy: mail.drop
8 finished: completed ["sent","Tool blocked by policy: mail.drop"]

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"[\n  \"sent\",\n  \"Tool blocked by policy: mail.drop\"\n]","structured":{"status":"completed","result":["sent","Tool blocked by policy: mail.drop"],"logs":[]},"isError":false}
