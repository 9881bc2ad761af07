tool!    mail.send -> "sent"
tool?    file.read -> "text"
program  console.log("before", Math.random() < 1);
         const read = await tools.file.read({});
         const sent = await tools.mail.send({ read });
         console.log("after");
         return { read, sent }
person   restarts the server
person   accepts

=== journal
1 started
2 prepared
3 logged Log: before true
4 call 1 made: file.read {}
5 call 1 dispatched, attempt 1
6 call 1 returned "text"
7 call 2 made: mail.send {"read":"text"}
8 call 2 asked (approval): Approve mail.send?
9 paused after 1 inputs
10 call 2 answered: accept
11 call 2 dispatched, attempt 1
12 call 2 returned "sent"
13 logged Log: after
14 finished: completed {"read":"text","sent":"sent"}

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve mail.send?\n\nArguments:\n{\n  \"read\": \"text\"\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve mail.send?\n\nArguments:\n{\n  \"read\": \"text\"\n}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"read":"text"},"requestedSchema":{"type":"object","properties":{}}}}}
! the server restarts
> POST /api/executions/exec_1/resume {"action":"accept"}
< 200 {"status":"completed","text":"{\n  \"read\": \"text\",\n  \"sent\": \"sent\"\n}\n\nLogs:\n[log] before true\n[log] after","structured":{"status":"completed","result":{"read":"text","sent":"sent"},"logs":["[log] before true","[log] after"]},"isError":false}
