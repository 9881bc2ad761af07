tool     who.pay form {"type":"object"}
program  return await tools.who.pay({})
person   restarts the server
person   says {"amount":3}
person   says {"choice":"retry"}

=== journal
1 started
2 prepared
3 call 1 made: who.pay {}
4 call 1 dispatched, attempt 1
5 call 1 asked (form): Please fill in
6 paused after 0 inputs
7 call 1 asked (in doubt): Tool "who.pay" was called and the server stopped before its result was known. It may or may not have run. Try again, treat it as failed, or supply the result?
8 call 1 answered: accept {"amount":3}
9 paused after 0 inputs
10 call 1 answered: accept {"choice":"retry"}
11 call 1 dispatched, attempt 2
12 call 1 returned {"amount":3}
13 finished: completed {"amount":3}

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Please fill in\n\nRequested schema:\n{\n  \"type\": \"object\"\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Please fill in","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.who.pay","args":{},"requestedSchema":{"type":"object"}}}}
! the server restarts
> POST /api/executions/exec_1/resume {"action":"accept","content":{"amount":3}}
< 200 {"status":"paused","text":"Execution paused: Tool \"who.pay\" was called and the server stopped before its result was known. It may or may not have run. Try again, treat it as failed, or supply the result?\n\nArguments:\n{}\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"properties\": {\n    \"choice\": {\n      \"type\": \"string\",\n      \"enum\": [\n        \"retry\",\n        \"fail\",\n        \"supply\"\n      ],\n      \"description\": \"retry: call the tool again; fail: let the call fail; supply: go on with result\"\n    },\n    \"result\": {\n      \"description\": \"what the tool would have returned, if choice is supply\"\n    }\n  },\n  \"required\": [\n    \"choice\"\n  ]\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_2\n\ninstructions: A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_2","interaction":{"kind":"form","message":"Tool \"who.pay\" was called and the server stopped before its result was known. It may or may not have run. Try again, treat it as failed, or supply the result?\n\nArguments:\n{}","instructions":"A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.who.pay","args":{},"requestedSchema":{"type":"object","properties":{"choice":{"type":"string","enum":["retry","fail","supply"],"description":"retry: call the tool again; fail: let the call fail; supply: go on with result"},"result":{"description":"what the tool would have returned, if choice is supply"}},"required":["choice"]}}}}
> POST /api/executions/exec_2/resume {"action":"accept","content":{"choice":"retry"}}
< 200 {"status":"completed","text":"{\n  \"amount\": 3\n}","structured":{"status":"completed","result":{"amount":3},"logs":[]},"isError":false}
