// fetch, which is there only to say what is there instead. Differs from version 1: clients of Executor look for the first words.
(function (kit) {
  "use strict";

  const { self: NativeTypeError } = kit.TypeError;

  // Not there for those who ask whether it is; a clear word for those who call it.
  const fetch = kit.host.unseen({
    fetch() {
      const way = kit.outside === "" ? "and this program was given no tools" : "everything outside is reached through " + kit.outside;
      throw new NativeTypeError("fetch is disabled" + (kit.outside === "" ? ", " : ": ") + way);
    },
  }.fetch);

  return { __proto__: null, fetch };
})
