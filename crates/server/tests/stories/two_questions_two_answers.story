tool!    mail.send -> "sent"
program  const results = await Promise.allSettled([tools.mail.send({ n: 1 }), tools.mail.send({ n: 2 })]);
         return results.map((result) => result.status)
person   accepts
person   declines

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"n":1}
4 call 1 asked (approval): Approve mail.send?
5 call 2 made: mail.send {"n":2}
6 call 2 asked (approval): Approve mail.send?
7 paused after 0 inputs
8 call 1 answered: accept
9 call 1 dispatched, attempt 1
10 call 1 returned "sent"
11 paused after 1 inputs
12 call 2 answered: decline
13 call 2 failed (Declined): Tool "mail.send" requires approval but the request was declined by the user.
14 finished: completed ["fulfilled","rejected"]

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{\n  \"n\": 1\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{\n  \"n\": 1\n}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"n":1},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_1/resume {"action":"accept"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{\n  \"n\": 2\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_2\n\ninstructions: A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_2","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{\n  \"n\": 2\n}","instructions":"A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"n":2},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_2/resume {"action":"decline"}
< 200 {"status":"completed","text":"[\n  \"fulfilled\",\n  \"rejected\"\n]","structured":{"status":"completed","result":["fulfilled","rejected"],"logs":[]},"isError":false}
