policy   mail.* require_approval editable
tool     mail.copy echoes {"type":"object","properties":{"to":{"type":"string"}},"required":["to"],"additionalProperties":false}
program  return [await tools.mail.copy({ to: "ann" }), await tools.mail.copy({ to: "cid" })]
person   accepts with {"to":7}
person   accepts with {"to":"bob"}
person   restarts the server
person   accepts
person   requests GET /api/executions/exec_1/events?type=call,question,answer

=== journal
1 started
2 prepared
3 call 1 made: mail.copy {"to":"ann"}
4 call 1 asked (approval): Approve tools.mail.copy? (matched policy: mail.*)
5 paused after 0 inputs
6 call 1 answered: accept, with {"to":"bob"}
7 call 1 dispatched, attempt 1
8 call 1 returned {"to":"bob"}
9 call 2 made: mail.copy {"to":"cid"}
10 call 2 asked (approval): Approve tools.mail.copy? (matched policy: mail.*)
11 paused after 1 inputs
12 call 2 answered: accept
13 call 2 dispatched, attempt 1
14 call 2 returned {"to":"cid"}
15 finished: completed [{"to":"bob"},{"to":"cid"}]

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Approve tools.mail.copy? (matched policy: mail.*)\n\nArguments:\n{\n  \"to\": \"ann\"\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Approve tools.mail.copy? (matched policy: mail.*)\n\nArguments:\n{\n  \"to\": \"ann\"\n}","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.copy","args":{"to":"ann"},"requestedSchema":{"type":"object","properties":{}},"editable":true}}}
> POST /api/executions/exec_1/resume {"action":"accept","arguments":{"to":7}}
< 400 {"_tag":"BadRequestError","message":"The answer does not fit the question: The arguments of \"mail.copy\" do not fit: at /to: value is not of type \"string\"."}
> POST /api/executions/exec_1/resume {"action":"accept","arguments":{"to":"bob"}}
< 200 {"status":"paused","text":"Execution paused: Approve tools.mail.copy? (matched policy: mail.*)\n\nArguments:\n{\n  \"to\": \"cid\"\n}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {}\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_2\n\ninstructions: A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_2","interaction":{"kind":"form","message":"Approve tools.mail.copy? (matched policy: mail.*)\n\nArguments:\n{\n  \"to\": \"cid\"\n}","instructions":"A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.mail.copy","args":{"to":"cid"},"requestedSchema":{"type":"object","properties":{}},"editable":true}}}
! the server restarts
> POST /api/executions/exec_2/resume {"action":"accept"}
< 200 {"status":"completed","text":"[\n  {\n    \"to\": \"bob\"\n  },\n  {\n    \"to\": \"cid\"\n  }\n]","structured":{"status":"completed","result":[{"to":"bob"},{"to":"cid"}],"logs":[]},"isError":false}
> GET /api/executions/exec_1/events?type=call,question,answer {}
< 200 {"events":[{"seq":3,"at":T,"type":"call","call":1,"tool":"mail.copy","args":{"to":"ann"},"readOnly":false,"line":1},{"seq":4,"at":T,"type":"question","executionId":"exec_1","call":1,"kind":"approval","message":"Approve tools.mail.copy? (matched policy: mail.*)\n\nArguments:\n{\n  \"to\": \"ann\"\n}","editable":true},{"seq":6,"at":T,"type":"answer","executionId":"exec_1","call":1,"action":"accept","by":"anybody","arguments":{"to":"bob"}},{"seq":9,"at":T,"type":"call","call":2,"tool":"mail.copy","args":{"to":"cid"},"readOnly":false,"line":1},{"seq":10,"at":T,"type":"question","executionId":"exec_2","call":2,"kind":"approval","message":"Approve tools.mail.copy? (matched policy: mail.*)\n\nArguments:\n{\n  \"to\": \"cid\"\n}","editable":true},{"seq":12,"at":T,"type":"answer","executionId":"exec_2","call":2,"action":"accept","by":"anybody"}],"last":15,"more":false}
