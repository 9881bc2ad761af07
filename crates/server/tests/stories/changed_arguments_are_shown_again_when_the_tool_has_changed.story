policy   mail.* require_approval editable
tool     mail.copy echoes {"type":"object"}
program  return await tools.mail.copy({ to: "ann" })
person   restarts the server with other tools
person   accepts with {"to":"bob"}
person   accepts

=== journal
1 started
2 prepared
3 call 1 made: mail.copy {"to":"ann"}
4 call 1 asked (approval): Approve tools.mail.copy? (matched policy: mail.*)
5 paused after 0 inputs
6 call 1 answered: accept, with {"to":"bob"}
7 call 1 asked (approval): Tool "mail.copy" has changed since its approval was asked for, so the yes does not count. Approve the call of the tool as it is now?
8 paused after 0 inputs
9 call 1 answered: accept
10 call 1 dispatched, attempt 1
11 call 1 returned {"to":"bob"}
12 finished: completed {"to":"bob"}

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve tools.mail.copy? (matched policy: mail.*)\n\nArguments:\n{\n  \"to\": \"ann\"\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve tools.mail.copy? (matched policy: mail.*)\n\nArguments:\n{\n  \"to\": \"ann\"\n}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.copy","args":{"to":"ann"},"requestedSchema":{"type":"object","properties":{}},"editable":true}}}
! the server restarts
> POST /api/executions/exec_1/resume {"action":"accept","arguments":{"to":"bob"}}
< 200 {"status":"paused","text":"Execution paused: Tool \"mail.copy\" has changed since its approval was asked for, so the yes does not count. Approve the call of the tool as it is now?\n\nArguments:\n{\n  \"to\": \"bob\"\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_2\n\ninstructions: A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_2","interaction":{"kind":"form","message":"Tool \"mail.copy\" has changed since its approval was asked for, so the yes does not count. Approve the call of the tool as it is now?\n\nArguments:\n{\n  \"to\": \"bob\"\n}","instructions":"A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.copy","args":{"to":"bob"},"requestedSchema":{"type":"object","properties":{}},"editable":true}}}
> POST /api/executions/exec_2/resume {"action":"accept"}
< 200 {"status":"completed","text":"{\n  \"to\": \"bob\"\n}","structured":{"status":"completed","result":{"to":"bob"},"logs":[]},"isError":false}
