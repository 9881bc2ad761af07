tool?    who.are form {"type":"object"}
program  return await tools.who.are({})
person   restarts the server
person   says {"name":"Ann"}

=== journal
1 started
2 prepared
3 call 1 made: who.are {}
4 call 1 dispatched, attempt 1
5 call 1 asked (form): Please fill in
6 paused after 0 inputs
7 call 1 dispatched, attempt 2
8 call 1 answered: accept {"name":"Ann"}
9 call 1 returned {"name":"Ann"}
10 finished: completed {"name":"Ann"}

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Please fill in\n\nRequested schema:\n{\n  \"type\": \"object\"\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Please fill in","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.who.are","args":{},"requestedSchema":{"type":"object"}}}}
! the server restarts
> POST /api/executions/exec_1/resume {"action":"accept","content":{"name":"Ann"}}
< 200 {"status":"completed","text":"{\n  \"name\": \"Ann\"\n}","structured":{"status":"completed","result":{"name":"Ann"},"logs":[]},"isError":false}
