tool!    mail.send -> "sent"
tool     file.drop -> "dropped"
program  await tools.mail.send({ to: "ann" });
         try { await tools.file.drop({}) } catch (error) { return error.message }
person   adds file.* block
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
9 call 2 made: file.drop {}
10 call 2 failed (Refused): Tool blocked by policy: file.drop
11 finished: completed "Tool blocked by policy: file.drop"

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"to":"ann"},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/policies {"action":"block","owner":"org","pattern":"file.*"}
< 200 …
> POST /api/executions/exec_1/resume {"action":"accept"}
< 200 {"status":"completed","text":"Tool blocked by policy: file.drop","structured":{"status":"completed","result":"Tool blocked by policy: file.drop","logs":[]},"isError":false}
