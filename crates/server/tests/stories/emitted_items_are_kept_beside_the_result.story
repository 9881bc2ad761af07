program  emit({ type: "text", text: "hello" });
         console.warn("careful", { a: [1, 2] });
         return undefined

=== journal
1 started
2 prepared
3 emitted {"type":"text","text":"hello"}
4 logged Warn: careful {"a":[1,2]}
5 finished: completed undefined

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"(no return value; 1 item emitted to the user)\n\nLogs:\n[warn] careful {\"a\":[1,2]}","structured":{"status":"completed","result":null,"emitted":1,"items":[{"type":"text","text":"hello"}],"logs":["[warn] careful {\"a\":[1,2]}"]},"isError":false}
