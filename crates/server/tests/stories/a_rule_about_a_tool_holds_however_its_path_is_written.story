policy   mail.*  block
tool     mail.send -> "sent"
program  const messages = [];
         for (const call of [() => tools.mail.send({}), () => tools.tools.mail.send({}), () => tools.tools.tools.mail.send({})]) {
           try { await call() } catch (error) { messages.push(error.message) }
         }
         return messages

=== journal
1 started
2 prepared
3 call 1 made: mail.send {}
4 call 1 failed (Refused): Tool blocked by policy: mail.send
5 call 2 made: mail.send {}
6 call 2 failed (Refused): Tool blocked by policy: mail.send
7 call 3 made: mail.send {}
8 call 3 failed (Refused): Tool blocked by policy: mail.send
9 finished: completed ["Tool blocked by policy: mail.send","Tool blocked by policy: mail.send","Tool blocked by policy: mail.send"]
