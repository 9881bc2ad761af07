tool?    file.read -> "text"
program  tools.file.read({}).then((text) => console.log(text));
         return "done"

=== journal
1 started
2 prepared
3 call 1 made: file.read {}
4 call 1 dispatched, attempt 1
5 call 1 returned "text"
6 logged Log: text
7 finished: completed "done"

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"done\n\nLogs:\n[log] text","structured":{"status":"completed","result":"done","logs":["[log] text"]},"isError":false}
