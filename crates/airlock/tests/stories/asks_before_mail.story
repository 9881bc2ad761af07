policy   mail.*  require_approval
tool     mail.send -> {"ok":true}
program  return await tools.mail.send({ to: "ann" })
person   accepts

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"to":"ann"}
4 call 1 asked (approval): Approve mail.send? (matched policy: mail.*)
5 paused after 0 inputs
6 call 1 answered: accept
7 call 1 dispatched, attempt 1
8 call 1 returned {"ok":true}
9 finished: completed {"ok":true}
