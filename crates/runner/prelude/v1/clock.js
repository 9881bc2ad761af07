// The guest's time is that of the last input it received: it stands still in between.

const clock = { __proto__: null, now: 0, startedAt: 0 };
kit.clock = clock;

const NativeDate = Date;
const { construct } = kit;
const dateToString = kit.Date.toString;
const GuestDate = function Date(...args) {
  if (new.target === undefined) return dateToString(new NativeDate(clock.now));
  return construct(NativeDate, args.length === 0 ? [clock.now] : args, new.target);
};
defineProperty(GuestDate, "length", { __proto__: null, value: 7 });
defineProperty(GuestDate, "prototype", { __proto__: null, value: NativeDate.prototype, writable: false });
define(GuestDate, "now", { now: () => clock.now }.now);
define(GuestDate, "parse", NativeDate.parse);
define(GuestDate, "UTC", NativeDate.UTC);
define(NativeDate.prototype, "constructor", GuestDate);
