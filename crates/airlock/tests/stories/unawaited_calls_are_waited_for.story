tool?    file.read -> "text"
program  tools.file.read({}).then((text) => console.log(text));
         return "done"

=== journal
1 started
2 prepared
3 call 1 made: file.read {}
4 call 1 dispatched, attempt 1
5 call 1 returned "text"
6 logged Log: text
7 finished: completed "done"
