policy   mail.*  approve
tool     mail.send -> {"ok":true}
program  (await tools.mail.send({ to: "ann" })).ok

=== enclave
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":5000,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 tool_call {"args":{"to":"ann"},"callId":"c_1","tool":"mail.send","toolName":"mail.send"}
3 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"connecting"}
4 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"processing"}
5 tool_result_applied {"callId":"c_1","ok":true}
6 final {"ok":true,"result":true,"stats":{"duration":"…","durationMs":"…","iterationCount":0,"stdoutBytes":0,"toolCallCount":1}}
