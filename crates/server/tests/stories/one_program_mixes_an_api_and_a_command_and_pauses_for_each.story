policy   mail.*  require_approval
tool     mail.send -> {"sent":true}
commands
program  const built = await tools.process.run({ argv: ["sh", "-c", "printf built; exit 3"] })
         const mail = await tools.mail.send({ text: built.stdout })
         return [built, mail]
person   accepts
person   restarts the server
person   accepts

=== journal
1 started
2 prepared
3 call 1 made: process.run {"argv":["sh","-c","printf built; exit 3"]}
4 call 1 asked (approval): Run a command on this machine?
5 paused after 0 inputs
6 call 1 answered: accept
7 call 1 dispatched, attempt 1
8 call 1 says "built"
9 call 1 returned {"exceeded":null,"exitCode":3,"stderr":"","stdout":"built","timedOut":false,"truncated":false}
10 call 2 made: mail.send {"text":"built"}
11 call 2 asked (approval): Approve tools.mail.send? (matched policy: mail.*)
12 paused after 1 inputs
13 call 2 answered: accept
14 call 2 dispatched, attempt 1
15 call 2 returned {"sent":true}
16 finished: completed [{"exceeded":null,"exitCode":3,"stderr":"","stdout":"built","timedOut":false,"truncated":false},{"sent":true}]

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Run a command on this machine?\n\nArguments:\n{\n  \"argv\": [\n    \"sh\",\n    \"-c\",\n    \"printf built; exit 3\"\n  ]\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Run a command on this machine?\n\nArguments:\n{\n  \"argv\": [\n    \"sh\",\n    \"-c\",\n    \"printf built; exit 3\"\n  ]\n}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.process.run","args":{"argv":["sh","-c","printf built; exit 3"]},"requestedSchema":{"type":"object","properties":{}}}}}
> POST /api/executions/exec_1/resume {"action":"accept"}
< 200 {"status":"paused","text":"Execution paused: Approve tools.mail.send? (matched policy: mail.*)\n\nArguments:\n{\n  \"text\": \"built\"\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_2\n\ninstructions: A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_2","interaction":{"kind":"form","message":"Approve tools.mail.send? (matched policy: mail.*)\n\nArguments:\n{\n  \"text\": \"built\"\n}","instructions":"A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.send","args":{"text":"built"},"requestedSchema":{"type":"object","properties":{}}}}}
! the server restarts
> POST /api/executions/exec_2/resume {"action":"accept"}
< 200 {"status":"completed","text":"[\n  {\n    \"exceeded\": null,\n    \"exitCode\": 3,\n    \"stderr\": \"\",\n    \"stdout\": \"built\",\n    \"timedOut\": false,\n    \"truncated\": false\n  },\n  {\n    \"sent\": true\n  }\n]","structured":{"status":"completed","result":[{"exceeded":null,"exitCode":3,"stderr":"","stdout":"built","timedOut":false,"truncated":false},{"sent":true}],"logs":[]},"isError":false}
