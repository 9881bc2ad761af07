tool?    file.read fails  disk on fire
program  return await tools.file.read({}).catch((error) => error.message + "!")

=== journal
1 started
2 prepared
3 call 1 made: file.read {}
4 call 1 dispatched, attempt 1
5 call 1 failed (Tool): disk on fire
6 finished: completed "disk on fire!"

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"disk on fire!","structured":{"status":"completed","result":"disk on fire!","logs":[]},"isError":false}
