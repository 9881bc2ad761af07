session  {"limits":{"perToolDeadlineMs":200}}
program  await callTool("never")

=== enclave
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":5000,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":200},"replayUrl":"/sessions/s_story/stream"}
2 tool_call {"args":null,"callId":"c_1","tool":"never","toolName":"never"}
3 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"connecting"}
4 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"processing"}
5 tool_result_applied {"callId":"c_1","error":{"code":"TOOL_TIMEOUT","message":"Tool \"never\" did not answer within 200 ms."},"ok":false}
6 error {"code":"TOOL_TIMEOUT","message":"Tool \"never\" did not answer within 200 ms.","recoverable":false}
7 final {"error":{"code":"TOOL_TIMEOUT","message":"Tool \"never\" did not answer within 200 ms."},"ok":false,"stats":{"duration":"…","durationMs":"…","iterationCount":"…","stdoutBytes":0,"toolCallCount":1}}
