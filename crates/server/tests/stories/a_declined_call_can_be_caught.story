tool!    mail.send -> {"ok":true}
program  try { return await tools.mail.send({ to: "ann" }) }
         catch (error) { return error.message }
person   declines

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"to":"ann"}
4 call 1 asked (approval): Approve mail.send?
5 paused after 0 inputs
6 call 1 answered: decline
7 call 1 failed (Declined): Tool "mail.send" requires approval but the request was declined by the user.
8 finished: completed "Tool \"mail.send\" requires approval but the request was declined by the user."

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{\n  \"to\": \"ann\"\n}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"to":"ann"},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_1/resume {"action":"decline"}
< 200 {"status":"completed","text":"Tool \"mail.send\" requires approval but the request was declined by the user.","structured":{"status":"completed","result":"Tool \"mail.send\" requires approval but the request was declined by the user.","logs":[]},"isError":false}
