tool!    mail.send -> {"ok":true}
program  return await tools.mail.send({ to: "ann" })
person   waves away

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"to":"ann"}
4 call 1 asked (approval): Approve mail.send?
5 paused after 0 inputs
6 call 1 answered: cancel
7 call 1 failed (QuestionCancelled): Tool "mail.send" requires approval but the request was cancelled by the user.
8 finished: failed (QuestionCancelled): Tool "mail.send" requires approval but the request was cancelled by the user.
