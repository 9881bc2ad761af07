program  const x = ;

=== enclave
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":5000,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 error {"code":"SYNTAX_ERROR","message":"Failed to parse AgentScript code: Unexpected token (1:11)","recoverable":false}
3 final {"error":{"code":"SYNTAX_ERROR","message":"Failed to parse AgentScript code: Unexpected token (1:11)"},"ok":false,"stats":{"duration":"…","durationMs":"…","iterationCount":"…","stdoutBytes":0,"toolCallCount":0}}
