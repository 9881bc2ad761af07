// The tools of version 1, with arguments and emitted items in the forms that values have at the boundary.
(function (kit) {
  "use strict";

  return kit.host.part("calls")({ __proto__: kit, stringify: kit.load("values").write });
})
