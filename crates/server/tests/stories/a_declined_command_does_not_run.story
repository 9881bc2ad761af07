commands
program  try { return await tools.process.run({ argv: ["touch", "/nowhere/at/all"] }) } catch (error) { return error.message }
person   declines

=== journal
1 started
2 prepared
3 call 1 made: process.run {"argv":["touch","/nowhere/at/all"]}
4 call 1 asked (approval): Run a command on this machine?
5 paused after 0 inputs
6 call 1 answered: decline
7 call 1 failed (Declined): Tool "process.run" requires approval but the request was declined by the user.
8 finished: completed "Tool \"process.run\" requires approval but the request was declined by the user."
