policy   mail.*  require_approval
tool     mail.send -> {"ok":true}
program  return await tools.mail.send({ to: "ann" })
person   accepts

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"to":"ann"}
4 call 1 asked (approval): Approve mail.send? (matched policy: mail.*)
5 paused after 0 inputs
6 call 1 answered: accept
7 call 1 dispatched, attempt 1
8 call 1 returned {"ok":true}
9 finished: completed {"ok":true}

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send? (matched policy: mail.*)\n\nArguments:\n{\n  \"to\": \"ann\"\n}\n\nAsk the user for a response matching the requested schema, then call the resume tool.\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nexecutionId: exec_1\n\ninstructions: Ask the user for values matching requestedSchema. Then call the resume tool with executionId \"exec_1\", action \"accept\", and content matching requestedSchema. If the user declines, call resume with action \"decline\" or \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve mail.send? (matched policy: mail.*)\n\nArguments:\n{\n  \"to\": \"ann\"\n}","instructions":"Ask the user for values matching requestedSchema. Then call the resume tool with executionId \"exec_1\", action \"accept\", and content matching requestedSchema. If the user declines, call resume with action \"decline\" or \"cancel\".","address":"tools.mail.send","args":{"to":"ann"},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_1/resume {"action":"accept"}
< 200 {"status":"completed","text":"{\n  \"ok\": true\n}","structured":{"status":"completed","result":{"ok":true},"logs":[]},"isError":false}
