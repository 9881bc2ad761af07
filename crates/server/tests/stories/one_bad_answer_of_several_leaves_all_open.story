tool?    who.are form {"type":"object","required":["name"]}
program  return await Promise.all([tools.who.are({ n: 1 }), tools.who.are({ n: 2 })])
person   requests GET /api/executions/exec_1/questions
person   requests POST /api/executions/exec_1/answers {"answers":[{"executionId":"exec_1","action":"accept","content":{"name":"Ann"}},{"executionId":"exec_2","action":"accept","content":{}}]}
person   requests POST /api/executions/exec_1/answers {"answers":[{"executionId":"exec_1","action":"maybe"}]}
person   requests POST /api/executions/exec_1/answers {"answers":[{"executionId":"exec_2","action":"accept","content":{"name":"Bob"}},{"executionId":"exec_1","action":"accept","content":{"name":"Ann"}}]}

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Please fill in\n\nRequested schema:\n{\n  \"type\": \"object\",\n  \"required\": [\n    \"name\"\n  ]\n}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: exec_1\n\ninstructions: A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Please fill in","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.who.are","args":{"n":1},"requestedSchema":{"type":"object","required":["name"]}}}}
> GET /api/executions/exec_1/questions {}
< 200 {"questions":[{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"form","message":"Please fill in","instructions":"A person decides. If they agree, resume \"exec_1\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.who.are","args":{"n":1},"requestedSchema":{"type":"object","required":["name"]}}},{"status":"waiting_for_interaction","executionId":"exec_2","interaction":{"kind":"form","message":"Please fill in","instructions":"A person decides. If they agree, resume \"exec_2\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\".","address":"tools.who.are","args":{"n":2},"requestedSchema":{"type":"object","required":["name"]}}}]}
> POST /api/executions/exec_1/answers {"answers":[{"action":"accept","content":{"name":"Ann"},"executionId":"exec_1"},{"action":"accept","content":{},"executionId":"exec_2"}]}
< 400 {"_tag":"BadRequestError","message":"The answer does not fit the question: \"name\" is a required property."}
> POST /api/executions/exec_1/answers {"answers":[{"action":"maybe","executionId":"exec_1"}]}
< 400 {"_tag":"BadRequestError","message":"Answer 1: The member \"action\" must be \"accept\", \"decline\" or \"cancel\"."}
> POST /api/executions/exec_1/answers {"answers":[{"action":"accept","content":{"name":"Bob"},"executionId":"exec_2"},{"action":"accept","content":{"name":"Ann"},"executionId":"exec_1"}]}
< 200 {"status":"completed","text":"[\n  {\n    \"name\": \"Ann\"\n  },\n  {\n    \"name\": \"Bob\"\n  }\n]","structured":{"status":"completed","result":[{"name":"Ann"},{"name":"Bob"}],"logs":[]},"isError":false}
