// What version 2 changes in the language's own objects.
(function (kit) {
  "use strict";

  const { define } = kit;

  // ---- Dates name their time zone, as in Node ----

  const { prototype: DatePrototype } = Date;
  const { toString: nativeToString, toTimeString: nativeToTimeString } = DatePrototype;
  const { apply } = kit;
  const zoned = (text) => (text === "Invalid Date" ? text : text + " (Coordinated Universal Time)");
  define(DatePrototype, "toString", { toString() { return zoned(apply(nativeToString, this, [])); } }.toString);
  define(DatePrototype, "toTimeString", { toTimeString() { return zoned(apply(nativeToTimeString, this, [])); } }.toTimeString);
})
