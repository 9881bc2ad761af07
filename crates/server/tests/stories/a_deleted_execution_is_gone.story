tool!    mail.send -> "sent"
program  return await tools.mail.send({})
person   requests DELETE /api/executions/exec_1
person   accepts
person   requests DELETE /api/executions/exec_1
person   requests GET /api/executions/exec_1/result
person   requests GET /api/executions

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{},"requestedSchema":{"type":"object","properties":{}}}}}
> DELETE /api/executions/exec_1 {}
< 409 {"_tag":"ConflictError","message":"Not done: this execution has not ended."}
> POST /api/executions/exec_1/resume {"action":"accept"}
< 200 {"status":"completed","text":"sent","structured":{"status":"completed","result":"sent","logs":[]},"isError":false}
> DELETE /api/executions/exec_1 {}
< 200 {"removed":true}
> GET /api/executions/exec_1/result {}
< 404 {"_tag":"ExecutionNotFoundError","executionId":"exec_1","message":"There is no execution or question exec_1, or it belongs to another caller."}
> GET /api/executions {}
< 200 {"executions":[],"time":T}
