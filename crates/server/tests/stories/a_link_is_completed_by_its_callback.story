tool?    sign.in link https://login.example/start?state={state}
program  return await tools.sign.in({})
person   requests GET /api/callback?state=wrong&code=7
person   requests GET /api/callback?state=STATE&code=7
person   requests POST /api/executions/exec_1/resume {"action":"accept"}

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"paused","text":"Execution paused: Please visit\n\nThis waits for a person to open this page:\nhttps://login.example/start?state=exec_1.SECRET\n\nexecutionId: exec_1\n\ninstructions: A person opens the page. Once they are done there, resume \"exec_1\" with action \"accept\", unless the page did that itself; then resuming tells what followed. If they will not, use action \"decline\" or \"cancel\".","structured":{"status":"waiting_for_interaction","executionId":"exec_1","interaction":{"kind":"url","message":"Please visit","instructions":"A person opens the page. Once they are done there, resume \"exec_1\" with action \"accept\", unless the page did that itself; then resuming tells what followed. If they will not, use action \"decline\" or \"cancel\".","address":"tools.sign.in","args":{},"url":"https://login.example/start?state=exec_1.SECRET"}}}
> GET /api/callback?state=wrong&code=7 {}
< 404 {"_tag":"NotFoundError","message":"Nobody waits for this callback: its state is unknown."}
> GET /api/callback?state=exec_1.SECRET&code=7 {}
< 200 <!doctype html><meta charset="utf-8"><title>Done</title><p>Done. You can close this page.</p>
> POST /api/executions/exec_1/resume {"action":"accept"}
< 200 {"status":"completed","text":"{\n  \"code\": \"7\"\n}","structured":{"status":"completed","result":{"code":"7"},"logs":[]},"isError":false}
