session  {"limits":{"idleMs":200}}
program  console.log("waiting"); await callTool("never")

=== enclave
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":5000,"idleMs":200,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 stdout {"chunk":"waiting\n","data":"waiting\n"}
3 tool_call {"args":null,"callId":"c_1","tool":"never","toolName":"never"}
4 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"connecting"}
5 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"processing"}
6 error {"code":"IDLE_TIMEOUT","message":"The program waited longer than 200 ms for its caller.","recoverable":false}
7 final {"error":{"code":"IDLE_TIMEOUT","message":"The program waited longer than 200 ms for its caller."},"ok":false,"stats":{"duration":"…","durationMs":"…","iterationCount":"…","stdoutBytes":7,"toolCallCount":1}}
