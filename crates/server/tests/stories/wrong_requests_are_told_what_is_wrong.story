program  return 1
person   requests POST /api/executions {"cod":"return 1"}
person   requests POST /api/executions {"code":5}
person   requests GET /api/executions/exec_00000000-0000-4000-8000-000000000001
person   requests POST /api/executions/nonsense/resume {"action":"accept"}
person   requests POST /api/executions/exec_00000000-0000-4000-8000-000000000001/resume {"action":"perhaps"}
person   requests PUT /api/executions {}
person   requests GET /api/nowhere

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"1","structured":{"status":"completed","result":1,"logs":[]},"isError":false}
> POST /api/executions {"cod":"return 1"}
< 400 {"_tag":"BadRequestError","message":"The member \"code\" is missing; it is the program, a string."}
> POST /api/executions {"code":5}
< 400 {"_tag":"BadRequestError","message":"The member \"code\" must be a string, not a number."}
> GET /api/executions/exec_1 {}
< 404 {"_tag":"ExecutionNotFoundError","executionId":"exec_1","message":"There is no execution or question exec_1, or it belongs to another caller."}
> POST /api/executions/nonsense/resume {"action":"accept"}
< 404 {"_tag":"ExecutionNotFoundError","executionId":"nonsense","message":"There is no execution or question nonsense, or it belongs to another caller."}
> POST /api/executions/exec_1/resume {"action":"perhaps"}
< 400 {"_tag":"BadRequestError","message":"The member \"action\" must be \"accept\", \"decline\" or \"cancel\"."}
> PUT /api/executions {}
< 405 {"_tag":"MethodNotAllowedError","message":"/api/executions does not take PUT; the header Allow says what it takes."}
> GET /api/nowhere {}
< 404 {"_tag":"NotFoundError","message":"There is nothing at /api/nowhere. GET /api/openapi.json describes what there is."}
