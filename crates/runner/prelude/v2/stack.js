// `error.stack` begins with the error's class and message, as in Node, and names the places of the program's own text.
(function (kit) {
  "use strict";

  const { apply, define, defineProperty, getOwnPropertyDescriptor, host } = kit;
  const { self: NativeError } = kit.Error;
  const { prototype: ErrorPrototype } = NativeError;
  const native = getOwnPropertyDescriptor(ErrorPrototype, "stack");
  const nativeCapture = NativeError.captureStackTrace;
  const { stackOf } = kit;

  kit.rawStackOf = stackOf;
  kit.stackOf = (error) => kit.load("errors").stackText(error);

  const { get } = getOwnPropertyDescriptor({
    get stack() {
      const raw = stackOf(this);
      // The host asks for places, not for a text; of other objects there is none.
      return raw === undefined || host.isLooking() ? raw : kit.load("errors").stackText(this);
    },
  }, "stack");
  defineProperty(ErrorPrototype, "stack", { __proto__: null, get, set: native.set, enumerable: false, configurable: true });
  define(NativeError, "captureStackTrace", {
    captureStackTrace(object, constructor) {
      apply(nativeCapture, NativeError, arguments.length < 2 ? [object] : [object, constructor]);
      kit.load("errors").capture(object);
    },
  }.captureStackTrace);
})
