caller   wait cancels enough is enough
program  await callTool("wait")

=== enclave
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":5000,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 tool_call {"args":null,"callId":"c_1","tool":"wait","toolName":"wait"}
3 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"connecting"}
4 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"processing"}
5 error {"code":"SESSION_CANCELLED","message":"The session was cancelled by teller: enough is enough","recoverable":false}
6 final {"error":{"code":"SESSION_CANCELLED","message":"The session was cancelled by teller: enough is enough"},"ok":false,"stats":{"duration":"…","durationMs":"…","iterationCount":"…","stdoutBytes":0,"toolCallCount":1}}
