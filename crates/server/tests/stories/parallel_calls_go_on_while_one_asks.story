tool!    mail.send -> "sent"
tool?    file.read -> "text"
program  const [sent, read] = await Promise.all([tools.mail.send({}), tools.file.read({ n: 1 })]);
         return [sent, read, await tools.file.read({ n: 2 })]
person   accepts

=== journal
1 started
2 prepared
3 call 1 made: mail.send {}
4 call 1 asked (approval): Approve mail.send?
5 call 2 made: file.read {"n":1}
6 call 2 dispatched, attempt 1
7 call 2 returned "text"
8 paused after 1 inputs
9 call 1 answered: accept
10 call 1 dispatched, attempt 1
11 call 1 returned "sent"
12 call 3 made: file.read {"n":2}
13 call 3 dispatched, attempt 1
14 call 3 returned "text"
15 finished: completed ["sent","text","text"]

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_1/resume {"action":"accept"}
< 200 {"status":"completed","text":"[\n  \"sent\",\n  \"text\",\n  \"text\"\n]","structured":{"status":"completed","result":["sent","text","text"],"logs":[]},"isError":false}
