// Compiling is most of what a world costs. So what not every program needs is compiled when it is first touched: a part
// is the source of a function that takes the kit and returns what it adds to it.

const loaded = create(null);
const load = (part) => {
  const known = loaded[part];
  return known === undefined ? (loaded[part] = host.part(part)(kit)) : known;
};
kit.load = load;
kit.loaded = loaded;

// Objects of ours say by these what they are: each looks at an object and answers undefined if it is not of its kind.
kit.views = create(null);
kit.nViews = 0;

// Globals that are made when they are looked at: name, part.
const lazy = create(null);

const lazily = (name, part) => {
  const get = () => {
    const value = load(part)[name];
    const property = getOwnPropertyDescriptor(world, name);
    if (property !== undefined && property.get === get) define(world, name, value);
    return value;
  };
  // What an assignment does to an ordinary property, also of an object that inherits from the global one.
  const set = function (value) {
    const enumerable = this !== world;
    defineProperty(this, name, { __proto__: null, value, writable: true, enumerable, configurable: true });
  };
  lazy[name] = get;
  defineProperty(world, name, { __proto__: null, get, set, enumerable: false, configurable: true });
};

// Nobody should see how: a global that is asked for its descriptor has been made by then.
const settle = (name) => {
  const property = getOwnPropertyDescriptor(world, name);
  if (property !== undefined && property.get !== undefined && property.get === lazy[name]) lazy[name]();
};
kit.settle = settle;
const honest = (owner, name) => {
  const native = owner[name];
  define(owner, name, {
    [name](object, key) {
      if (object === world && typeof key === "string") settle(key);
      return native(object, key);
    },
  }[name]);
};
honest(Object, "getOwnPropertyDescriptor");
honest(Reflect, "getOwnPropertyDescriptor");
const { getOwnPropertyDescriptors } = Object;
define(Object, "getOwnPropertyDescriptors", {
  getOwnPropertyDescriptors(object) {
    if (object === world) {
      const names = ownKeys(lazy);
      for (let at = 0; at < names.length; at += 1) settle(names[at]);
    }
    return getOwnPropertyDescriptors(object);
  },
}.getOwnPropertyDescriptors);
