tool?    mail.count -> 3
caller   users:list -> [1,2]
program  console.log("hello"); console.warn("careful"); emit({ n: 1 });
 const users = await callTool("users:list", { limit: 2 });
 let sum = await tools.mail.count(); for (const user of users) sum += user; sum

=== enclave
1 session_init {"cancelUrl":"/sessions/s_story/cancel","encryption":{"enabled":false},"expiresAt":"…","limits":{"graceMs":60000,"heartbeatIntervalMs":5000,"maxDurationMs":30000,"maxStdoutBytes":262144,"maxToolCalls":100,"maxToolResultBytes":5242880,"perToolDeadlineMs":30000},"replayUrl":"/sessions/s_story/stream"}
2 stdout {"chunk":"hello\n","data":"hello\n"}
3 log {"level":"warn","message":"careful"}
4 partial_result {"data":{"n":1},"hasNext":true,"path":["0"]}
5 tool_call {"args":{"limit":2},"callId":"c_1","tool":"users:list","toolName":"users:list"}
6 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"connecting"}
7 tool_progress {"callId":"c_1","elapsedMs":"…","phase":"processing"}
8 tool_result_applied {"callId":"c_1","ok":true}
9 tool_call {"args":null,"callId":"c_2","tool":"mail.count","toolName":"mail.count"}
10 tool_progress {"callId":"c_2","elapsedMs":"…","phase":"connecting"}
11 tool_progress {"callId":"c_2","elapsedMs":"…","phase":"processing"}
12 tool_result_applied {"callId":"c_2","ok":true}
13 final {"ok":true,"result":6,"stats":{"duration":"…","durationMs":"…","iterationCount":2,"stdoutBytes":12,"toolCallCount":2}}
