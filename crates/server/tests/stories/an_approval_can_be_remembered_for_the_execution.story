tool!    mail.send -> "sent"
tool!    mail.drop -> "dropped"
program  const first = await tools.mail.send({ to: "ann" });
         const dropped = await tools.mail.drop({});
         return [first, dropped, await tools.mail.send({ to: "bob" })]
person   accepts from now on
person   restarts the server
person   accepts

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"to":"ann"}
4 call 1 asked (approval): Approve mail.send?
5 paused after 0 inputs
6 call 1 answered: accept, from now on
7 call 1 dispatched, attempt 1
8 call 1 returned "sent"
9 call 2 made: mail.drop {}
10 call 2 asked (approval): Approve mail.drop?
11 paused after 1 inputs
12 call 2 answered: accept
13 call 2 dispatched, attempt 1
14 call 2 returned "dropped"
15 call 3 made: mail.send {"to":"bob"}
16 call 3 dispatched, attempt 1
17 call 3 returned "sent"
18 finished: completed ["sent","dropped","sent"]

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"to":"ann"},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_1/resume {"action":"accept","remember":"execution"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.drop?\n\nArguments:\n{}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_2\n\ninstructions: A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_2","interaction":{"kind":"form","message":"Approve mail.drop?\n\nArguments:\n{}","instructions":"A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.drop","args":{},"requestedSchema":{"type":"object","properties":{}}}}}
! the server restarts
> POST /api/executions/exec_2/resume {"action":"accept"}
< 200 {"status":"completed","text":"[\n  \"sent\",\n  \"dropped\",\n  \"sent\"\n]","structured":{"status":"completed","result":["sent","dropped","sent"],"logs":[]},"isError":false}
