session  {"limits":{"maxDurationMs":200},"tools":[]}
program  let n = 0; for (;;) { n = 1 }

=== enclave
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":5000,"maxDurationMs":200,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 error {"code":"TIMEOUT","message":"The program ran longer than 200 ms.","recoverable":false}
3 final {"error":{"code":"TIMEOUT","message":"The program ran longer than 200 ms."},"ok":false,"stats":{"duration":"…","durationMs":"…","iterationCount":"…","stdoutBytes":0,"toolCallCount":0}}
