// greeting(name): a sentence that greets somebody.
(function (kit) {
  "use strict";

  const { toWellFormed } = kit.String;

  const greeting = (name) => "Hello, " + toWellFormed("" + name) + ".";

  return { __proto__: null, greeting };
})
