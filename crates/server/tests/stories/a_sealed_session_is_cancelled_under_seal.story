session  {"encryption":{"mode":"required"}}
caller   ask cancels hush
program  return await callTool("ask")

=== stream
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":true,"keyId":"…","serverHello":"…"},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":5000,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 enc: tool_call {"args":null,"callId":"c_1","tool":"ask","toolName":"ask"}
3 enc: tool_progress {"callId":"c_1","elapsedMs":"…","phase":"connecting"}
4 enc: tool_progress {"callId":"c_1","elapsedMs":"…","phase":"processing"}
5 enc: error {"code":"SESSION_CANCELLED","message":"The session was cancelled by anybody: hush","recoverable":false}
6 enc: final {"error":{"code":"SESSION_CANCELLED","message":"The session was cancelled by anybody: hush"},"ok":false,"stats":{"duration":"…","durationMs":"…","iterationCount":"…","stdoutBytes":0,"toolCallCount":1}}
