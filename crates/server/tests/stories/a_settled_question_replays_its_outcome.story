tool!    mail.send -> "sent"
program  await tools.mail.send({ n: 1 });
         await tools.mail.send({ n: 2 });
         return "done"
person   accepts
person   accepts
person   restarts the server
person   requests POST /api/executions/exec_1/resume {"action":"decline"}
person   requests POST /api/executions/exec_2/resume {"action":"cancel"}
person   requests GET /api/executions/exec_2

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{\n  \"n\": 1\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{\n  \"n\": 1\n}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"n":1},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_1/resume {"action":"accept"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{\n  \"n\": 2\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_2\n\ninstructions: A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_2","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{\n  \"n\": 2\n}","instructions":"A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"n":2},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_2/resume {"action":"accept"}
< 200 {"status":"completed","text":"done","structured":{"status":"completed","result":"done","logs":[]},"isError":false}
! the server restarts
> POST /api/executions/exec_1/resume {"action":"decline"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{\n  \"n\": 2\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_2\n\ninstructions: A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_2","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{\n  \"n\": 2\n}","instructions":"A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"n":2},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_2/resume {"action":"cancel"}
< 200 {"status":"completed","text":"done","structured":{"status":"completed","result":"done","logs":[]},"isError":false}
> GET /api/executions/exec_2 {}
< 200 {"status":"completed","text":"done","structured":{"status":"completed","result":"done","logs":[]},"isError":false}
