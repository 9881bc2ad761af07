tool!    mail.send -> "sent"
tool?    file.read -> "text"
program  console.log("before", Math.random() < 1);
         const read = await tools.file.read({});
         const sent = await tools.mail.send({ read });
         console.log("after");
         return { read, sent }
person   restarts the server
person   accepts

=== journal
1 started
2 prepared
3 logged Log: before true
4 call 1 made: file.read {}
5 call 1 dispatched, attempt 1
6 call 1 returned "text"
7 call 2 made: mail.send {"read":"text"}
8 call 2 asked (approval): Approve mail.send?
9 paused after 1 inputs
10 call 2 answered: accept
11 call 2 dispatched, attempt 1
12 call 2 returned "sent"
13 logged Log: after
14 finished: completed {"read":"text","sent":"sent"}
