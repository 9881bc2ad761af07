session  {"encryption":{"mode":"required"}}
caller   ask -> {"answer":42}
program  console.log("hush"); return await callTool("ask", { secret: 1 })

=== stream
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":true,"keyId":"…","serverHello":"…"},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":5000,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 enc: stdout {"chunk":"hush\n","data":"hush\n"}
3 enc: tool_call {"args":{"secret":1},"callId":"c_1","tool":"ask","toolName":"ask"}
4 enc: tool_progress {"callId":"c_1","elapsedMs":"…","phase":"connecting"}
5 enc: tool_progress {"callId":"c_1","elapsedMs":"…","phase":"processing"}
6 enc: tool_result_applied {"callId":"c_1","ok":true}
7 enc: final {"ok":true,"result":{"answer":42},"stats":{"duration":"…","durationMs":"…","iterationCount":0,"stdoutBytes":4,"toolCallCount":1}}
