program  console.log("a"); emit("x"); console.warn("b"); return 1
person   requests POST /api/executions {"code":"console.log('a'); emit('x'); console.warn('b'); return 1"}
person   requests GET /api/executions
person   requests GET /api/executions/run_1/events?type=log,emitted&after=3

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"1\n\nLogs:\n[log] a\n[warn] b","structured":{"status":"completed","result":1,"emitted":1,"items":[{"text":"x","type":"text"}],"logs":["[log] a","[warn] b"]},"isError":false}
> POST /api/executions {"code":"console.log('a'); emit('x'); console.warn('b'); return 1"}
< 200 {"status":"completed","text":"1\n\nLogs:\n[log] a\n[warn] b","structured":{"status":"completed","result":1,"emitted":1,"items":[{"text":"x","type":"text"}],"logs":["[log] a","[warn] b"]},"isError":false}
> GET /api/executions {}
< 200 {"executions":[{"activeMs":MS,"caller":"anybody","created":T,"durationMs":MS,"ended":T,"executionId":"run_1","last":6,"outcome":"completed","status":"finished","tools":[]},{"activeMs":MS,"caller":"anybody","created":T,"durationMs":MS,"ended":T,"executionId":"run_2","last":6,"outcome":"completed","status":"finished","tools":[]}],"time":T}
> GET /api/executions/run_1/events?type=log,emitted&after=3 {}
< 200 {"events":[{"seq":4,"at":T,"type":"emitted","item":"x"},{"seq":5,"at":T,"type":"log","level":"warn","line":"b"}],"last":6,"more":false}
