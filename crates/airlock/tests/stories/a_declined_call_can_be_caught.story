tool!    mail.send -> {"ok":true}
program  try { return await tools.mail.send({ to: "ann" }) }
         catch (error) { return error.message }
person   declines

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"to":"ann"}
4 call 1 asked (approval): Approve mail.send?
5 paused after 0 inputs
6 call 1 answered: decline
7 call 1 failed (Declined): Tool "mail.send" requires approval but the request was declined by the user.
8 finished: completed "Tool \"mail.send\" requires approval but the request was declined by the user."
