session  {"limits":{"maxStdoutBytes":20}}
program  for (;;) console.log("0123456789")

=== enclave
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":5000,"maxDurationMs":30000,"maxStdoutBytes":20,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 stdout {"chunk":"0123456789\n","data":"0123456789\n"}
3 stdout {"chunk":"0123456789\n","data":"0123456789\n"}
4 error {"code":"MAX_STDOUT_BYTES","message":"The program printed more than 20 bytes.","recoverable":false}
5 final {"error":{"code":"MAX_STDOUT_BYTES","message":"The program printed more than 20 bytes."},"ok":false,"stats":{"duration":"…","durationMs":"…","iterationCount":"…","stdoutBytes":20,"toolCallCount":0}}
