program  emit("plain"); emit({ a: 1 }); emit(null); emit(undefined);
         emit({ type: "image", data: "Zm9v", mimeType: "image/png" });
         emit({ _tag: "ToolFile", name: "r.csv", mimeType: "text/csv", encoding: "base64", data: "YQ==", byteLength: 1 });
         return { kept: true }

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"{\n  \"kept\": true\n}","structured":{"status":"completed","result":{"kept":true},"emitted":6,"items":[{"text":"plain","type":"text"},{"text":"{\"a\":1}","type":"text"},{"text":"null","type":"text"},{"text":"null","type":"text"},{"type":"image","data":"Zm9v","mimeType":"image/png"},{"_tag":"ToolFile","name":"r.csv","mimeType":"text/csv","encoding":"base64","data":"YQ==","byteLength":1}],"logs":[]},"isError":false}
