program  emit({ type: "text", text: "hello" });
         console.warn("careful", { a: [1, 2] });
         return undefined

=== journal
1 started
2 prepared
3 emitted {"type":"text","text":"hello"}
4 logged Warn: careful { a: [ 1, 2 ] }
5 finished: completed undefined
