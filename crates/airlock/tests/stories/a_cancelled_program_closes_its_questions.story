tool!    mail.send -> "sent"
program  return await tools.mail.send({ to: "ann" })
person   cancels the program

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"to":"ann"}
4 call 1 asked (approval): Approve mail.send?
5 paused after 0 inputs
6 finished: cancelled by person
