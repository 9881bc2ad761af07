session  {"limits":{"heartbeatIntervalMs":0}}
tool     mail.send -> "sent"
caller   wait adds mail.drop
program  return await callTool("wait")

=== stream
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":0,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 tool_call {"args":null,"callId":"c_1","tool":"wait","toolName":"wait"}
3 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"connecting"}
4 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"processing"}
4 catalog_changed {"addedActions":["mail.drop"],"removedActions":[],"version":"…"}
5 tool_result_applied {"callId":"c_1","ok":true}
6 final {"ok":true,"result":"told","stats":{"duration":"…","durationMs":"…","iterationCount":0,"stdoutBytes":0,"toolCallCount":1}}
