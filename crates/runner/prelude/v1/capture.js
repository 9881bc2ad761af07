// What the language gives, as it was before the guest could touch it.
//
// Guest code may later replace every global and every method of every prototype. Whatever runs after that time must
// therefore use captured functions only: no method calls on values, no spread, no for-of, no array destructuring, and
// no list whose prototype the guest can reach.

const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
const { create } = Object;
const world = globalThis; // its name for itself can be deleted, too
const uncurry = Function.prototype.bind.bind(Function.prototype.call);

const define = (object, name, value) =>
  defineProperty(object, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });

// Everything the parts may use. `kit.String.slice(text, 1)` is `text.slice(1)`, whatever became of the latter; `self`
// is the constructor.
const kit = {
  __proto__: null,
  host,
  define,
  apply,
  create,
  defineProperty,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  ownKeys,
  construct: Reflect.construct,
  setPrototypeOf: Object.setPrototypeOf,
  freeze: Object.freeze,
  stringify: JSON.stringify,
  isArray: Array.isArray,
  isError: Error.isError,
  isView: ArrayBuffer.isView,
  trunc: Math.trunc,
  isSafeInteger: Number.isSafeInteger,
  parseInt,
  parseFloat,
  encodeURIComponent,
  decodeURIComponent,
  fromCharCode: String.fromCharCode,
  fromCodePoint: String.fromCodePoint,
  symbols: { __proto__: null, iterator: Symbol.iterator, toPrimitive: Symbol.toPrimitive, toStringTag: Symbol.toStringTag },
  IteratorPrototype: Iterator.prototype,
  InternalErrorPrototype: InternalError.prototype,
};

const capture = (name, type, methods, getters) => {
  const captured = { __proto__: null, self: type };
  const { prototype } = type;
  if (methods !== "") for (const method of methods.split(" ")) captured[method] = uncurry(prototype[method]);
  if (getters !== undefined) {
    for (const getter of getters.split(" ")) {
      captured[getter] = uncurry(getOwnPropertyDescriptor(prototype, getter).get);
    }
  }
  kit[name] = captured;
};
const TypedArray = getPrototypeOf(Uint8Array);
capture("String", String, "toWellFormed indexOf lastIndexOf slice padStart padEnd charCodeAt codePointAt toLowerCase normalize trim valueOf");
capture("Array", Array, "join sort");
capture("Number", Number, "toString valueOf");
capture("Boolean", Boolean, "valueOf");
capture("BigInt", BigInt, "valueOf");
capture("Symbol", Symbol, "toString valueOf");
capture("Object", Object, "toString hasOwnProperty");
capture("Function", Function, "toString");
capture("Date", Date, "toString toISOString getTime");
capture("RegExp", RegExp, "toString", "source hasIndices global ignoreCase multiline dotAll unicode unicodeSets sticky");
capture("Map", Map, "get set has forEach", "size");
capture("Set", Set, "add has delete forEach", "size");
capture("WeakMap", WeakMap, "get set");
capture("ArrayBuffer", ArrayBuffer, "transfer", "byteLength maxByteLength resizable");
capture("DOMException", DOMException, "", "name message");
capture("DataView", DataView, "", "buffer byteLength byteOffset");
capture("TypedArray", TypedArray, "set", "buffer byteLength byteOffset length");
capture("Uint8Array", Uint8Array, "toBase64");
for (const name of ["Promise", "Proxy", "Error", "TypeError", "RangeError", "SyntaxError", "ReferenceError", "EvalError", "URIError", "AggregateError"]) {
  kit[name] = { __proto__: null, self: globalThis[name] };
}
kit.Promise.then = uncurry(Promise.prototype.then);
kit.stackOf = uncurry(getOwnPropertyDescriptor(Error.prototype, "stack").get);
kit.arrays = create(null);
for (const name of "Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array Float16Array Float32Array Float64Array BigInt64Array BigUint64Array".split(" ")) {
  kit.arrays[name] = globalThis[name];
}
kit.TypedArray.type = uncurry(getOwnPropertyDescriptor(TypedArray.prototype, Symbol.toStringTag).get);
