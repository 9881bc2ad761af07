// A call that a person accepts, and what the program makes of the answer.
const said = await tools.demo.ask({ text: "go on?" });
console.log("answered", said);
return [said.approved, Math.random()];
