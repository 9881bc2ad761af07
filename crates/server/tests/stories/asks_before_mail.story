policy   mail.*  require_approval
tool     mail.send -> {"ok":true}
program  return await tools.mail.send({ to: "ann" })
person   accepts

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"to":"ann"}
4 call 1 asked (approval): Approve tools.mail.send? (matched policy: mail.*)
5 paused after 0 inputs
6 call 1 answered: accept
7 call 1 dispatched, attempt 1
8 call 1 returned {"ok":true}
9 finished: completed {"ok":true}

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve tools.mail.send? (matched policy: mail.*)\n\nArguments:\n{\n  \"to\": \"ann\"\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve tools.mail.send? (matched policy: mail.*)\n\nArguments:\n{\n  \"to\": \"ann\"\n}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"to":"ann"},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_1/resume {"action":"accept"}
< 200 {"status":"completed","text":"{\n  \"ok\": true\n}","structured":{"status":"completed","result":{"ok":true},"logs":[]},"isError":false}
