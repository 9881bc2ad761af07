// structuredClone of version 1, for which a file is an object like any other.
(function (kit) {
  "use strict";

  return kit.host.part("clone_1")({ __proto__: kit, views: kit.clonedViews });
})
