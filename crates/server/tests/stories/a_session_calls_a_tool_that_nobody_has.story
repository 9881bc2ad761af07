session  {"tools":[]}
program  await callTool("nowhere")

=== enclave
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":5000,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 tool_call {"args":null,"callId":"c_1","tool":"nowhere","toolName":"nowhere"}
3 tool_result_applied {"callId":"c_1","error":{"code":"UNKNOWN_TOOL","message":"Unknown tool: nowhere. Tool not found: nowhere"},"ok":false}
4 error {"code":"UNKNOWN_TOOL","message":"Unknown tool: nowhere. Tool not found: nowhere","recoverable":false}
5 final {"error":{"code":"UNKNOWN_TOOL","message":"Unknown tool: nowhere. Tool not found: nowhere"},"ok":false,"stats":{"duration":"…","durationMs":"…","iterationCount":"…","stdoutBytes":0,"toolCallCount":1}}
