tool!    mail.send -> "sent"
program  const first = await tools.mail.send({ to: "ann" });
         return [first, await tools.mail.send({ to: "ann" })]
person   accepts
person   accepts

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"to":"ann"}
4 call 1 asked (approval): Approve mail.send?
5 paused after 0 inputs
6 call 1 answered: accept
7 call 1 dispatched, attempt 1
8 call 1 returned "sent"
9 call 2 made: mail.send {"to":"ann"}
10 call 2 asked (approval): Approve mail.send?
11 paused after 1 inputs
12 call 2 answered: accept
13 call 2 dispatched, attempt 1
14 call 2 returned "sent"
15 finished: completed ["sent","sent"]

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"to":"ann"},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_1/resume {"action":"accept"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_2\n\ninstructions: A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_2","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}","instructions":"A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"to":"ann"},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_2/resume {"action":"accept"}
< 200 {"status":"completed","text":"[\n  \"sent\",\n  \"sent\"\n]","structured":{"status":"completed","result":["sent","sent"],"logs":[]},"isError":false}
