caller   bad fails E_NOPE not today
program  try { await callTool("bad") } catch (error) { console.log(error.code, error.message) }
 await callTool("bad")

=== enclave
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":5000,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 tool_call {"args":null,"callId":"c_1","tool":"bad","toolName":"bad"}
3 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"connecting"}
4 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"processing"}
5 tool_result_applied {"callId":"c_1","error":{"code":"E_NOPE","message":"not today"},"ok":false}
6 stdout {"chunk":"E_NOPE not today\n","data":"E_NOPE not today\n"}
7 tool_call {"args":null,"callId":"c_2","tool":"bad","toolName":"bad"}
8 tool_progress {"callId":"c_2","elapsedMs":"…","phase":"connecting"}
9 tool_progress {"callId":"c_2","elapsedMs":"…","phase":"processing"}
10 tool_result_applied {"callId":"c_2","error":{"code":"E_NOPE","message":"not today"},"ok":false}
11 error {"code":"E_NOPE","message":"not today","recoverable":false}
12 final {"error":{"code":"E_NOPE","message":"not today"},"ok":false,"stats":{"duration":"…","durationMs":"…","iterationCount":"…","stdoutBytes":16,"toolCallCount":2}}
