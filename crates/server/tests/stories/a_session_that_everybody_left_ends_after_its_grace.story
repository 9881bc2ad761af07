session  {"limits":{"graceMs":100}}
caller   wait leaves
program  console.log("here"); await callTool("wait")

=== enclave
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"graceMs":100,"heartbeatIntervalMs":5000,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 stdout {"chunk":"here\n","data":"here\n"}
3 tool_call {"args":null,"callId":"c_1","tool":"wait","toolName":"wait"}
4 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"connecting"}
5 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"processing"}
6 error {"code":"CLIENT_DISCONNECTED","message":"The program ran 100 ms while nobody listened.","recoverable":false}
7 final {"error":{"code":"CLIENT_DISCONNECTED","message":"The program ran 100 ms while nobody listened."},"ok":false,"stats":{"duration":"…","durationMs":"…","iterationCount":"…","stdoutBytes":4,"toolCallCount":1}}
