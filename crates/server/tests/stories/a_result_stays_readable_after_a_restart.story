tool!    mail.send -> "sent"
program  return { sent: await tools.mail.send({}) }
person   requests GET /api/executions/exec_1/result
person   accepts
person   restarts the server
person   requests GET /api/executions/exec_1/result
person   requests GET /api/executions/exec_1

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{},"requestedSchema":{"type":"object","properties":{}}}}}
> GET /api/executions/exec_1/result {}
< 202 {"status":"paused","executionId":"exec_1"}
> POST /api/executions/exec_1/resume {"action":"accept"}
< 200 {"status":"completed","text":"{\n  \"sent\": \"sent\"\n}","structured":{"status":"completed","result":{"sent":"sent"},"logs":[]},"isError":false}
! the server restarts
> GET /api/executions/exec_1/result {}
< 200 {"status":"completed","result":{"sent":"sent"}}
> GET /api/executions/exec_1 {}
< 200 {"status":"completed","text":"{\n  \"sent\": \"sent\"\n}","structured":{"status":"completed","result":{"sent":"sent"},"logs":[]},"isError":false}
