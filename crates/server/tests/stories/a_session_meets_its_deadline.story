session  {"limits":{"deadlineMs":200}}
program  await callTool("never")

=== enclave
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"deadlineMs":200,"graceMs":60000,"heartbeatIntervalMs":5000,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 tool_call {"args":null,"callId":"c_1","tool":"never","toolName":"never"}
3 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"connecting"}
4 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"processing"}
5 deadline_exceeded {"budgetMs":200,"elapsedMs":"…"}
6 error {"code":"DEADLINE_EXCEEDED","message":"The program was not finished 200 ms after its start.","recoverable":false}
7 final {"error":{"code":"DEADLINE_EXCEEDED","message":"The program was not finished 200 ms after its start."},"ok":false,"stats":{"duration":"…","durationMs":"…","iterationCount":"…","stdoutBytes":0,"toolCallCount":1}}
