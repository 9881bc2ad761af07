tool!    mail.send -> "sent"
program  return await tools.mail.send({ to: "ann" })
person   cancels the program

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"to":"ann"}
4 call 1 asked (approval): Approve mail.send?
5 paused after 0 inputs
6 finished: cancelled by person

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}\n\nAsk the user for a response matching the requested schema, then call the resume tool.\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nexecutionId: exec_1\n\ninstructions: Ask the user for values matching requestedSchema. Then call the resume tool with executionId \"exec_1\", action \"accept\", and content matching requestedSchema. If the user declines, call resume with action \"decline\" or \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}","instructions":"Ask the user for values matching requestedSchema. Then call the resume tool with executionId \"exec_1\", action \"accept\", and content matching requestedSchema. If the user declines, call resume with action \"decline\" or \"cancel\".","address":"tools.mail.send","args":{"to":"ann"},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_1/cancel {}
< 200 {"status":"completed","text":"Error: The execution was cancelled by anybody.","structured":{"status":"error","error":"The execution was cancelled by anybody.","logs":[]},"isError":true}
