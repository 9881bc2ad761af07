tool!    mail.send -> "sent"
program  const results = await Promise.allSettled([tools.mail.send({ n: 1 }), tools.mail.send({ n: 2 })]);
         return results.map((result) => result.status)
person   accepts
person   declines

=== journal
1 started
2 prepared
3 call 1 made: mail.send {"n":1}
4 call 1 asked (approval): Approve mail.send?
5 call 2 made: mail.send {"n":2}
6 call 2 asked (approval): Approve mail.send?
7 paused after 0 inputs
8 call 1 answered: accept
9 call 1 dispatched, attempt 1
10 call 1 returned "sent"
11 paused after 1 inputs
12 call 2 answered: decline
13 call 2 failed (Declined): Tool "mail.send" requires approval but the request was declined by the user.
14 finished: completed ["fulfilled","rejected"]
