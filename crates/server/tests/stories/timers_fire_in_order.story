program  const seen = [];
         await new Promise((done) => {
         setTimeout(() => { seen.push("late"); done() }, 50);
         setTimeout(() => seen.push("early"), 20);
         clearTimeout(setTimeout(() => seen.push("never"), 10));
         });
         return seen

=== journal
1 started
2 prepared
3 timer 1 set
4 timer 2 set
5 timer 3 set
6 timer 3 cleared
7 timer 2 fired
8 timer 1 fired
9 finished: completed ["early","late"]

=== executor
> POST /api/executions {"code":"…"}
< 200 {"status":"completed","text":"[\n  \"early\",\n  \"late\"\n]","structured":{"status":"completed","result":["early","late"],"logs":[]},"isError":false}
