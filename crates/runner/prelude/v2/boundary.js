// How values cross the boundary between the guest and the host. What that takes is loaded when a value first needs it.
(function (kit) {
  "use strict";

  const { apply, define, host } = kit;
  const { self: NativeUint8Array } = kit.Uint8Array;
  const { fromBase64 } = NativeUint8Array;
  const { join } = kit.getPrototypeOf(NativeUint8Array).prototype;

  kit.Uint8Array.fromBase64 = (text, options) => apply(fromBase64, NativeUint8Array, [text, options]);
  kit.TypedArray.join = (array, separator) => apply(join, array, [separator]);

  // How the console shows a file. Before one is made there is none.
  const fileView = (object) => (kit.loaded.files === undefined ? undefined : kit.load("files").view(object));
  define(kit.views, kit.nViews, fileView);
  kit.nViews += 1;

  // What else has a view cannot be cloned; a file can, like any other object.
  kit.clonedViews = { __proto__: kit.views, [kit.nViews - 1]: () => undefined };

  define(host, "writeValue", (value) => kit.load("values").write(value));
  define(host, "receiveFiles", (value) => kit.load("files").receive(value));
})
