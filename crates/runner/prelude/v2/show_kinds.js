// How files look: without their data, which nobody reads. All else looks as in version 1.
(function (kit) {
  "use strict";

  const kinds = kit.host.part("show_kinds_1")(kit);
  const { addAll, ownData } = kit.load("show");

  const special = (object, within) => {
    // Before a file is made there is none.
    if (kit.loaded.files === undefined || !kit.load("files").isTagged(object)) return kinds.special(object, within);
    const shown = { __proto__: null };
    const names = ["name", "mimeType", "byteLength"];
    for (let at = 0; at < names.length; at += 1) {
      const value = ownData(object, names[at]);
      if (value !== undefined) shown[names[at]] = value;
    }
    return addAll(shown, within, "ToolFile {");
  };

  return { __proto__: null, special, title: kinds.title, showFunction: kinds.showFunction };
})
