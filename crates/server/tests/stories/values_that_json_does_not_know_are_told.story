program  return NaN
person   requests POST /api/executions {"code":"return -Infinity"}
person   requests POST /api/executions {"code":"return 10n"}
person   requests POST /api/executions {"code":"return Symbol('x')"}
person   requests POST /api/executions {"code":"return () => 1"}
person   requests POST /api/executions {"code":"const a = {}; a.a = a; return a"}
person   requests POST /api/executions {"code":"return undefined"}
person   requests POST /api/executions {"code":"return { n: NaN, b: [-Infinity, 10n, null], u: undefined, d: new Date(0) }"}
person   requests POST /api/executions {"code":"return 'x'.repeat(70000000)"}

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"NaN","structured":{"status":"completed","result":"NaN","logs":[]},"isError":false}
> POST /api/executions {"code":"return -Infinity"}
< 200 {"status":"completed","text":"-Infinity","structured":{"status":"completed","result":"-Infinity","logs":[]},"isError":false}
> POST /api/executions {"code":"return 10n"}
< 200 {"status":"completed","text":"10","structured":{"status":"completed","result":"10","logs":[]},"isError":false}
> POST /api/executions {"code":"return Symbol('x')"}
< 200 {"status":"completed","text":"Error: the program's value cannot be turned into JSON: a symbol has no JSON form","structured":{"status":"error","error":"the program's value cannot be turned into JSON: a symbol has no JSON form","logs":[]},"isError":true}
> POST /api/executions {"code":"return () => 1"}
< 200 {"status":"completed","text":"Error: the program's value cannot be turned into JSON: a function has no JSON form","structured":{"status":"error","error":"the program's value cannot be turned into JSON: a function has no JSON form","logs":[]},"isError":true}
> POST /api/executions {"code":"const a = {}; a.a = a; return a"}
< 200 {"status":"completed","text":"Error: the program's value cannot be turned into JSON: Converting circular structure to JSON","structured":{"status":"error","error":"the program's value cannot be turned into JSON: Converting circular structure to JSON","logs":[]},"isError":true}
> POST /api/executions {"code":"return undefined"}
< 200 {"status":"completed","text":"(no result)","structured":{"status":"completed","result":null,"logs":[]},"isError":false}
> POST /api/executions {"code":"return { n: NaN, b: [-Infinity, 10n, null], u: undefined, d: new Date(0) }"}
< 200 {"status":"completed","text":"{\n  \"n\": \"NaN\",\n  \"b\": [\n    \"-Infinity\",\n    \"10\",\n    null\n  ],\n  \"d\": \"1970-01-01T00:00:00.000Z\"\n}","structured":{"status":"completed","result":{"n":"NaN","b":["-Infinity","10",null],"d":"1970-01-01T00:00:00.000Z"},"logs":[]},"isError":false}
> POST /api/executions {"code":"return 'x'.repeat(70000000)"}
< 200 {"status":"completed","text":"Error: out of memory. The program needed more than 67108864 bytes of memory.","structured":{"status":"error","error":"out of memory. The program needed more than 67108864 bytes of memory.","logs":[]},"isError":true}
