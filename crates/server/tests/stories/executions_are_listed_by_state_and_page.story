tool!    mail.send -> "sent"
program  return await tools.mail.send({})
person   requests POST /api/executions {"code":"return 1"}
person   requests GET /api/executions?limit=1
person   requests GET /api/executions?status=paused
person   requests GET /api/executions?status=open
person   requests POST /api/executions/exec_1/cancel

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions {"code":"return 1"}
< 200 {"status":"completed","text":"1","structured":{"status":"completed","result":1,"logs":[]},"isError":false}
> GET /api/executions?limit=1 {}
< 200 {"executions":[{"activeMs":MS,"caller":"anybody","created":T,"durationMs":MS,"ended":T,"executionId":"run_2","last":3,"outcome":"completed","status":"finished","tools":[]}],"next":"run_2","time":T}
> GET /api/executions?status=paused {}
< 200 {"executions":[{"caller":"anybody","created":T,"durationMs":MS,"executionId":"run_3","last":5,"status":"paused","tools":["mail.send"]}],"time":T}
> GET /api/executions?status=open {}
< 400 {"_tag":"BadRequestError","message":"The query's status must be running, paused, parked or finished."}
> POST /api/executions/exec_1/cancel {}
< 200 {"status":"completed","text":"Error: The execution was cancelled by anybody.","structured":{"status":"error","error":"The execution was cancelled by anybody.","logs":[]},"isError":true}
