tool?    who.are form {"type":"object"}
program  try { return await tools.who.are({}) } catch (error) { return [error.code, error.message] }
person   declines

=== journal
1 started
2 prepared
3 call 1 made: who.are {}
4 call 1 dispatched, attempt 1
5 call 1 asked (form): Please fill in
6 paused after 0 inputs
7 call 1 answered: decline
8 call 1 failed (Declined): Tool "who.are" requires approval but the request was declined by the user.
9 finished: completed ["declined","Tool \"who.are\" requires approval but the request was declined by the user."]

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Please fill in\n\nRequested schema:\n{\n  \"type\": \"object\"\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Please fill in","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.who.are","args":{},"requestedSchema":{"type":"object"}}}}
> POST /api/executions/exec_1/resume {"action":"decline"}
< 200 {"status":"completed","text":"[\n  \"declined\",\n  \"Tool \\\"who.are\\\" requires approval but the request was declined by the user.\"\n]","structured":{"status":"completed","result":["declined","Tool \"who.are\" requires approval but the request was declined by the user."],"logs":[]},"isError":false}
