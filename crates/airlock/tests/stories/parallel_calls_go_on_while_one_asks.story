tool!    mail.send -> "sent"
tool?    file.read -> "text"
program  const [sent, read] = await Promise.all([tools.mail.send({}), tools.file.read({ n: 1 })]);
         return [sent, read, await tools.file.read({ n: 2 })]
person   accepts

=== journal
1 started
2 prepared
3 call 1 made: mail.send {}
4 call 1 asked (approval): Approve mail.send?
5 call 2 made: file.read {"n":1}
6 call 2 dispatched, attempt 1
7 call 2 returned "text"
8 paused after 1 inputs
9 call 1 answered: accept
10 call 1 dispatched, attempt 1
11 call 1 returned "sent"
12 call 3 made: file.read {"n":2}
13 call 3 dispatched, attempt 1
14 call 3 returned "text"
15 finished: completed ["sent","text","text"]
