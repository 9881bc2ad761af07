tool!    mail.send -> "sent"
tool!    file.drop -> "dropped"
program  await tools.mail.send({ to: "ann" });
         await tools.file.drop({});
         return await tools.mail.send({ to: "ann" })
person   accepts from now on
person   restarts the server with other tools
person   accepts
person   accepts
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
9 call 2 made: file.drop {}
10 call 2 asked (approval): Approve file.drop?
11 paused after 1 inputs
12 call 2 answered: accept
13 call 2 asked (approval): Tool "file.drop" has changed since its approval was asked for, so the yes does not count. Approve the call of the tool as it is now?
14 paused after 1 inputs
15 call 2 answered: accept
16 call 2 dispatched, attempt 1
17 call 2 returned "dropped"
18 call 3 made: mail.send {"to":"ann"}
19 call 3 asked (approval): Approve mail.send?
20 paused after 2 inputs
21 call 3 answered: accept
22 call 3 dispatched, attempt 1
23 call 3 returned "sent"
24 finished: completed "sent"

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"to":"ann"},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_1/resume {"action":"accept","remember":"execution"}
< 200 {"status":"paused","text":"Execution paused: Approve file.drop?\n\nArguments:\n{}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_2\n\ninstructions: A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_2","interaction":{"kind":"form","message":"Approve file.drop?\n\nArguments:\n{}","instructions":"A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.file.drop","args":{},"requestedSchema":{"type":"object","properties":{}}}}}
! the server restarts
> POST /api/executions/exec_2/resume {"action":"accept"}
< 200 {"status":"paused","text":"Execution paused: Tool \"file.drop\" has changed since its approval was asked for, so the yes does not count. Approve the call of the tool as it is now?\n\nArguments:\n{}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_3\n\ninstructions: A person decides. If they agree, resume \"exec_3\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_3","interaction":{"kind":"form","message":"Tool \"file.drop\" has changed since its approval was asked for, so the yes does not count. Approve the call of the tool as it is now?\n\nArguments:\n{}","instructions":"A person decides. If they agree, resume \"exec_3\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.file.drop","args":{},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_3/resume {"action":"accept"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_4\n\ninstructions: A person decides. If they agree, resume \"exec_4\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_4","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}","instructions":"A person decides. If they agree, resume \"exec_4\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"to":"ann"},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_4/resume {"action":"accept"}
< 200 {"status":"completed","text":"sent","structured":{"status":"completed","result":"sent","logs":[]},"isError":false}
