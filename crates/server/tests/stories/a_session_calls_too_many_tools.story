session  {"limits":{"maxToolCalls":1}}
caller   one -> 1
program  await callTool("one"); await callTool("one")

=== enclave
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":5000,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":1,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 tool_call {"args":null,"callId":"c_1","tool":"one","toolName":"one"}
3 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"connecting"}
4 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"processing"}
5 tool_result_applied {"callId":"c_1","ok":true}
6 error {"code":"MAX_TOOL_CALLS","message":"Maximum tool call limit exceeded (1). This limit prevents runaway script execution. The program made more than 1 tool calls.","recoverable":false}
7 final {"error":{"code":"MAX_TOOL_CALLS","message":"Maximum tool call limit exceeded (1). This limit prevents runaway script execution. The program made more than 1 tool calls."},"ok":false,"stats":{"duration":"…","durationMs":"…","iterationCount":"…","stdoutBytes":0,"toolCallCount":1}}
