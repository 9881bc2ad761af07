session  {"limits":{"maxToolResultBytes":5}}
caller   big -> "0123456789"
program  await callTool("big")

=== enclave
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":5000,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 tool_call {"args":null,"callId":"c_1","tool":"big","toolName":"big"}
3 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"connecting"}
4 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"processing"}
5 tool_result_applied {"callId":"c_1","error":{"code":"TOOL_RESULT_TOO_LARGE","message":"The tool returned 12 bytes; at most 5 are taken."},"ok":false}
6 error {"code":"TOOL_RESULT_TOO_LARGE","message":"The tool returned 12 bytes; at most 5 are taken.","recoverable":false}
7 final {"error":{"code":"TOOL_RESULT_TOO_LARGE","message":"The tool returned 12 bytes; at most 5 are taken."},"ok":false,"stats":{"duration":"…","durationMs":"…","iterationCount":"…","stdoutBytes":0,"toolCallCount":1}}
